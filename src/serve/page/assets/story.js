// The story of a run on the page: drawn once a frame at most, however fast the events come, and followed as long as its end is in sight.

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

  /** Draws soon what has changed. */
  soon() {
    if (this.waits) return;
    this.waits = true;
    const draw = () => {
      if (this.waits) this.draw();
    };
    requestAnimationFrame(draw);
    setTimeout(draw, 250); // frames stand still where nobody looks
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

  /** Says which logs there are: steps lead to theirs. */
  logs(names) {
    this.context.logs = new Set(names);
    for (const [block, { update }] of this.views) if (block.kind === "gate") update();
  }

  /** Leads to a block. */
  lead(block) {
    const place = this.views.get(block)?.element;
    if (!place) return;
    this.list.querySelector(".lead")?.classList.remove("lead");
    place.classList.add("lead");
    place.setAttribute("tabindex", "-1");
    place.scrollIntoView({ block: "start" });
    place.focus({ preventScroll: true });
  }

  /** Follows the story from now on, or no more. */
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
