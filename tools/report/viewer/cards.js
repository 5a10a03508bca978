// A grid of cards. Only cards near the window exist, so that ten thousand cards cost no more than
// fifty. The Tab key reaches one card, arrow keys reach the others.

import {h} from "./dom.js";

const GAP = 12, PADDING = 14, TEXT = 64;  // pixels
const ASPECT = 0.75;                      // height / width of a photo's field

export class Cards {
  /** `content(item)` returns a card's content; `open(index)` is called for a selected card. */
  constructor(content, open) {
    Object.assign(
        this, {content, open, items: [], cards: new Map(), current: 0, size: 220, panes: 1});
    this.element = h("ul", {
      class: "cards",
      onkeydown: (event) => this.key(event),
      onclick: (event) => {
        const card = event.target.closest(".card");
        if (card) this.open(Number(card.dataset.index));
      },
      onfocusin: (event) => this.place(Number(event.target.dataset.index))
    });
    let waits = false;
    const later = () => {
      if (!waits)
        requestAnimationFrame(() => {
          waits = false;
          this.fill();
        });
      waits = true;
    };
    addEventListener("scroll", later, {passive: true});
    addEventListener("resize", later);
    addEventListener("beforeprint", () => this.fill(true));
    new ResizeObserver(() => {
      if (this.element.clientWidth !== this.width) this.layOut();
    }).observe(this.element);
  }

  /** Shows items; call it again if they change. */
  show(items, {size, panes}) {
    const kept = this.items[this.current];
    Object.assign(this, {items, size, panes});
    this.current = Math.max(0, items.indexOf(kept));
    this.layOut();
  }

  layOut() {
    this.width = this.element.clientWidth;
    if (this.width === 0) return;
    this.columns = Math.max(1, Math.floor((this.width + GAP) / (this.size + GAP)));
    this.cardWidth = (this.width + GAP) / this.columns - GAP;
    this.photoHeight = Math.round((this.cardWidth - PADDING) / this.panes * ASPECT);
    this.rowHeight = this.photoHeight + TEXT + PADDING + GAP;
    this.element.style.height =
        `${Math.max(0, Math.ceil(this.items.length / this.columns) * this.rowHeight - GAP)}px`;
    this.element.style.setProperty("--photo", `${this.photoHeight}px`);
    this.clear();
    this.fill();
  }

  clear() {
    this.hadFocus = this.element.contains(document.activeElement);
    for (const card of this.cards.values()) card.remove();
    this.cards.clear();
  }

  /** Creates the cards near the window, and the current one; removes the others. */
  fill(all = false) {
    if (!this.width) return;
    const top = this.element.getBoundingClientRect().top;
    const rows = all ?
        [0, Infinity] :
        [(-top - innerHeight / 2) / this.rowHeight, (-top + innerHeight * 1.5) / this.rowHeight];
    const first = Math.max(0, Math.floor(rows[0]) * this.columns);
    const last = Math.min(this.items.length, Math.ceil(rows[1]) * this.columns);
    for (const [index, card] of this.cards)
      if ((index < first || index >= last) && index !== this.current) {
        card.remove();
        this.cards.delete(index);
      }
    for (let index = first; index < last; ++index) this.card(index);
    if (this.items.length > 0) this.card(this.current);
    if (this.hadFocus) this.focus();
    this.hadFocus = false;
  }

  /** Returns the button of an item; creates it if it does not exist. */
  card(index) {
    const made = this.cards.get(index);
    if (made) return made.firstChild;
    const row = Math.floor(index / this.columns), column = index % this.columns;
    const button =
        h("button", {
          type: "button",
          class: "card",
          tabindex: index === this.current ? 0 : -1,
          "data-index": index
        },
          this.content(this.items[index], index));
    const item =
        h("li", {
          "aria-posinset": index + 1,
          "aria-setsize": this.items.length,
          style: `left: ${column * (this.cardWidth + GAP)}px; top: ${row * this.rowHeight}px; ` +
              `width: ${this.cardWidth}px; height: ${this.rowHeight - GAP}px`
        },
          button);
    const after = [...this.cards].filter(([other]) => other > index).sort(([a], [b]) => a - b)[0];
    this.element.insertBefore(item, after ? after[1] : null);
    this.cards.set(index, item);
    return button;
  }

  place(index) {
    this.cards.get(this.current)?.firstChild.setAttribute("tabindex", -1);
    this.current = index;
    this.card(index).setAttribute("tabindex", 0);
  }

  focus() {
    const button = this.card(this.current);
    button.focus({preventScroll: true});
    button.scrollIntoView({block: "nearest"});
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const last = this.items.length - 1;
    const to = {
      ArrowLeft: this.current - 1,
      ArrowRight: this.current + 1,
      ArrowUp: this.current - this.columns,
      ArrowDown: this.current + this.columns,
      Home: 0,
      End: last
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to < 0 || to > last) return;
    this.place(to);
    this.focus();
  }
}
