// Form fields, each with a label, a help text and a place for errors.

import { el, show } from "./dom.js";

let count = 0;

/** A field around an input, a menu or a text area. `name` is its name in the server's errors. */
export class Field {
  constructor(name, label, input, help = null) {
    const id = `field-${++count}`;
    this.name = name;
    this.input = input;
    this.fault = el("p.bad.fault", { id: `${id}-fault`, role: "alert", hidden: true });
    const about = help ? el("p.faint.help", { id: `${id}-help` }, help) : null;
    input.id = id;
    input.setAttribute("aria-describedby", [help ? `${id}-help` : "", `${id}-fault`].filter(Boolean).join(" "));
    this.element = el("div.field", {}, el("label", { for: id }, label), input, about, this.fault);
    input.addEventListener("input", () => this.blame());
  }

  get value() {
    return this.input.value.trim();
  }

  /** Shows an error; without words, removes it. */
  blame(...words) {
    const isWrong = words.flat(Infinity).some(Boolean);
    show(this.fault, ...words);
    this.fault.hidden = !isWrong;
    if (isWrong) this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
  }
}

/** Creates a menu; options are texts, or pairs of a value and a text. */
export function menu(name, options) {
  const option = (one) => {
    const [value, text] = Array.isArray(one) ? one : [one, one];
    return el("option", { value }, text);
  };
  return el("select", { name }, options.map(option));
}

/** Creates the field for a parameter of a task. */
export function parameter({ name, required, default: usual, choices, description }) {
  const isNeeded = required && usual === null;
  const input = choices.length
    ? menu(`param-${name}`, [...(isNeeded ? [["", "Choose…"]] : usual === null ? [["", "None"]] : []), ...choices])
    : el("input", { type: "text", name: `param-${name}`, placeholder: usual ?? "", autocomplete: "off", spellcheck: "false" });
  if (choices.length && usual !== null) input.value = usual;
  if (isNeeded) input.setAttribute("aria-required", "true");
  const help = [description, usual !== null && !choices.length ? `Default: ${usual}` : ""].filter(Boolean).join(" · ");
  return new Field(`params.${name}`, isNeeded ? `${name} (required)` : name, input, help || null);
}
