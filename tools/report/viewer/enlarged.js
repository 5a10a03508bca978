// Shows one gallery image enlarged to the window.

import {h, s} from "./dom.js";
import {number} from "./format.js";
import {colourOf, FOUND, pane, panesOf, TITLES, TRUTH, visible, wordsOf} from "./shapes.js";

const LETTER = 13;  // font size of names beside shapes, in pixels

export class Enlarged {
  /** `step(by)` moves by a number of images, `ends(last)` to the first or last image. */
  constructor({step, ends, closed}) {
    this.title = h("b");
    this.place = h("span", {class: "soft"});
    this.body = h("div", {class: "body"});
    const button = (text, action) => h("button", {type: "button", onclick: action}, text);
    this.element =
        h("dialog", {
          class: "view",
          onclose: () => this.left(),
          onclick: (event) => {
            if (event.target === this.element) this.close();
          },
          onkeydown: (event) => {
            const moves = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1};
            if (event.key in moves)
              step(moves[event.key]);
            else if (event.key === "Home" || event.key === "End")
              ends(event.key === "End");
            else if (event.key === "Escape")
              this.close();
            else
              return;
            event.preventDefault();
          }
        },
          h("header", {}, this.title, this.place, button("Previous", () => step(-1)),
            button("Next", () => step(1)), button("Close", () => this.close())),
          this.body);
    this.closed = closed;
    addEventListener("resize", () => {
      if (this.element.open) this.name();
    });
  }

  show(image, place, view, classes) {
    const shown = visible(image, view);
    this.element.setAttribute("aria-label", image.name);
    this.title.textContent = image.name;
    this.place.textContent = place;
    this.panes =
        panesOf(view.show).map((kinds) => ({kinds, ...pane(image, kinds, view, classes, true)}));
    this.named = {view, classes};
    for (const one of this.panes)
      one.element.append(h(
          "small", {}, one.kinds.length > 1 ? "detected, annotated dashed" : TITLES[one.kinds[0]]));
    const figures = Object.entries(image.figures ?? {})
                        .map(([name, value]) => `${name} ${number(value, 3)}`)
                        .join(", ");
    const items = [FOUND, TRUTH].flatMap(
        (kind) => [...shown[kind]]
                      .sort((a, b) => (b.score ?? 0) - (a.score ?? 0))
                      .map(
                          (shape) =>
                              h("li", {
                                style: `--c: ${colourOf(kind, shape, view)}`,
                                onpointerenter: () => this.point(shape),
                                onpointerleave: () => this.point(null)
                              },
                                `${TITLES[kind]}: ${wordsOf(kind, shape, view, classes)}`)));
    this.body.replaceChildren(
        h("div", {class: "panes"}, this.panes.map((one) => one.element)),
        h("p", {}, [figures, image.note].filter(Boolean).join(" · ")), h("ul", {}, items));
    if (!this.element.open) this.element.showModal();
    this.isOpen = true;
    this.name();
  }

  /** Closes immediately: the dialog's own event is fired later, maybe after the next key. */
  close() {
    this.element.close();
    this.left();
  }

  left() {
    if (this.isOpen) this.closed();
    this.isOpen = false;
  }

  /** Highlights one shape; null = none. */
  point(shape) {
    for (const {svg, shapes} of this.panes) {
      const paths = svg.querySelectorAll("path:not(.casing)");
      shapes.forEach(
          (one, i) => paths[i].classList.toggle("faded", shape !== null && one.shape !== shape));
    }
  }

  /** Writes names beside shapes at a constant size on the screen. */
  name() {
    for (const {svg, shapes} of this.panes) {
      const box = svg.viewBox.baseVal, width = svg.getBoundingClientRect().width;
      const size = LETTER * box.width / Math.max(1, width);
      for (const old of svg.querySelectorAll("text")) old.remove();
      svg.append(...shapes.map(
          ({kind, shape}) =>
              s("text", {
                "font-size": size,
                "stroke-width": size / 4,
                x: Math.max(0, shape.box[0]) + size / 4,
                y: Math.max(shape.box[1] + size, size)
              },
                wordsOf(kind, shape, this.named.view, this.named.classes))));
    }
  }
}
