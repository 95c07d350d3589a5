// The story of a run on the page. It is drawn at most once per frame, and scrolls along while its
// end is in view.

import { view } from "./blocks.js";
import { announce, el } from "./dom.js";

const NEAR = 160;

export class StoryView {
  constructor(story, run) {
    this.story = story;
    this.context = { run, logs: new Set() };
    this.list = el("div.story", { "aria-label": "Story" });
    this.jump = el("button.jump", { type: "button", hidden: true, onclick: () => this.toEnd() }, "↓ Newest");
    this.views = new Map();
    this.waits = false;
    this.element = el("div", {}, this.list, this.jump);
    this.draw();
  }

  /** Schedules the drawing of changed blocks. */
  soon() {
    if (this.waits) return;
    this.waits = true;
    const draw = () => {
      if (this.waits) this.draw();
    };
    requestAnimationFrame(draw);
    setTimeout(draw, 250); // browsers send no frames to hidden pages
  }

  draw() {
    this.waits = false;
    const isAtEnd = this.list.isConnected && this.isNearEnd();
    const fresh = document.createDocumentFragment();
    for (const block of this.story.takeChanged()) {
      const known = this.views.get(block);
      if (known) {
        known.update();
        continue;
      }
      const made = view(block, this.context);
      this.views.set(block, made);
      fresh.append(made.element);
    }
    const hasMore = fresh.childNodes.length > 0;
    this.list.append(fresh);
    if (this.story.said) {
      announce(this.story.said);
      this.story.said = null;
    }
    if (isAtEnd && this.isFollowed) this.toEnd();
    else if (hasMore && this.isFollowed && this.list.isConnected) this.jump.hidden = this.isNearEnd();
  }

  /** Sets the names of existing logs, so that steps can link to them. */
  logs(names) {
    this.context.logs = new Set(names);
    for (const [block, { update }] of this.views) if (block.kind === "gate") update();
  }

  /** Scrolls to a block. */
  lead(block) {
    const place = this.views.get(block)?.element;
    if (!place) return;
    this.list.querySelector(".lead")?.classList.remove("lead");
    place.classList.add("lead");
    place.setAttribute("tabindex", "-1");
    place.scrollIntoView({ block: "start" });
    place.focus({ preventScroll: true });
  }

  /** Turns following the story on or off. */
  follow(whether) {
    this.isFollowed = whether;
    if (!whether) this.jump.hidden = true;
  }

  isNearEnd() {
    const page = document.documentElement;
    return page.scrollHeight - page.clientHeight - page.scrollTop < NEAR;
  }

  toEnd() {
    this.jump.hidden = true;
    document.documentElement.scrollTop = document.documentElement.scrollHeight;
  }
}
