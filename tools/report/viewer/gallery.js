// A gallery of images that can be filtered by class, tag, name and score, and sorted.

import {Cards} from "./cards.js";
import {h, labelled, select} from "./dom.js";
import {Enlarged} from "./enlarged.js";
import {counted, number, percent} from "./format.js";
import {FOUND, isMissed, pane, panesOf, TRUTH, visible} from "./shapes.js";

const SEARCHED_FROM = 12;  // minimum number of images for a search by name

export class Gallery {
  /** `data`: the images of a page (README.md). `noun`: the word for an image. */
  constructor(id, data, noun = "image") {
    this.noun = noun;
    this.classes = data.classes;
    this.images = data.images.map(
        (one, index) => ({found: [], truth: [], tags: [], figures: {}, ...one, index}));
    this.has = (kind) => this.images.some((one) => one[kind].length > 0);
    this.both = this.has(FOUND) && this.has(TRUTH);
    this.judged = this.both &&
        this.images.some((one) => one.truth.some((shape) => shape.found_at !== undefined));
    this.view = {
      class: null,
      tag: "",
      text: "",
      sort: null,
      only: null,
      colour: "class",
      score: data.score ?? 0,
      show: this.both     ? "beside" :
          this.has(FOUND) ? FOUND :
                            TRUTH,
      size: this.both ? 320 : 220
    };
    this.cards = new Cards((image) => this.content(image), (index) => this.enlarge(index));
    this.enlarged = new Enlarged({
      step: (by) => this.enlarge(this.at + by),
      ends: (last) => this.enlarge(last ? this.shown.length - 1 : 0),
      closed: () => {
        this.cards.place(this.at);
        this.cards.focus();
      }
    });
    this.status = h("p", {class: "soft count", role: "status"});
    this.chip = h("p", {class: "chip", hidden: true});
    this.element =
        h("div", {class: "gallery", id}, this.tools(), this.chip, this.status, this.cards.element,
          this.enlarged.element);
    this.update();
  }

  tools() {
    const {view} = this, fields = [];
    const choice = (name, label, options, take) => {
      const field = select(name, options);
      field.addEventListener("input", () => {
        take(field.value);
        this.update();
      });
      fields.push(labelled(label, field));
    };
    const slider = (name, label, range, take, shown) => {
      const output = shown ? h("output", {}, shown()) : null;
      const field = h("input", {
        type: "range",
        name,
        ...range,
        oninput: () => {
          take(Number(field.value));
          if (output) output.textContent = shown();
          this.later();
        }
      });
      fields.push(labelled(label, field, output));
    };
    if (this.images.length >= SEARCHED_FROM) {
      const field = h("input", {
        type: "search",
        name: "text",
        oninput: () => {
          view.text = field.value.toLowerCase();
          this.later();
        }
      });
      fields.push(labelled("Name", field));
    }
    if (this.both)
      choice(
          "show", "Show",
          [
            ["beside", "detected beside annotated"], ["over", "both in one image"],
            [FOUND, "detected"], [TRUTH, "annotated"]
          ],
          (value) => {
            view.show = value;
          });
    const classes = this.counts(
        (image) => new Set([...image.found, ...image.truth].map((shape) => shape.class)));
    if (this.classes.length > 1)
      choice(
          "class", "Class",
          [
            ["", "all classes"],
            ...[...classes]
                .sort(([a], [b]) => a - b)
                .map(([k, count]) => [k, `${this.classes[k] ?? `class ${k}`} (${count})`])
          ],
          (value) => {
            view.class = value === "" ? null : Number(value);
          });
    const tags = this.counts((image) => image.tags);
    if (tags.size > 0)
      choice(
          "tag", "Tag",
          [
            ["", `all ${this.noun}s`],
            ...[...tags].map(([tag, count]) => [tag, `${tag} (${count})`])
          ],
          (value) => {
            view.tag = value;
          });
    const figures = [...this.counts((image) => Object.keys(image.figures)).keys()];
    if (figures.length > 0)
      choice(
          "sort", "Sort by",
          [
            ["", "original order"],
            ...figures.flatMap(
                (name) => [
                    [`-${name}`, `${name}, highest first`], [`+${name}`, `${name}, lowest first`]])
          ],
          (value) => {
            view.sort = value ? {figure: value.slice(1), sign: value[0] === "+" ? 1 : -1} : null;
          });
    if (this.judged)
      choice(
          "colour", "Colours", [["class", "by class"], ["verdict", "correct and wrong"]],
          (value) => {
            view.colour = value;
          });
    if (this.has(FOUND))
      slider(
          "score", "Minimum score ", {min: 0, max: 1, step: 0.01, value: view.score}, (value) => {
            view.score = value;
          }, () => view.score.toFixed(2));
    slider("size", "Size", {min: 120, max: 480, step: 20, value: view.size}, (value) => {
      view.size = value;
    });
    return h("form", {class: "tools", onsubmit: (event) => event.preventDefault()}, fields);
  }

  /** Returns the number of images for each key that `of(image)` returns. */
  counts(of) {
    const all = new Map();
    for (const image of this.images)
      for (const key of of (image)) all.set(key, (all.get(key) ?? 0) + 1);
    return all;
  }

  /** Shows only the images for which `test(image)` is true, under a title. */
  only(title, test) {
    this.view.only = test;
    this.chip.replaceChildren(
        `${title} `,
        h("button", {
          type: "button",
          onclick: () => {
            this.view.only = null;
            this.chip.hidden = true;
            this.update();
          }
        },
          `Show all ${this.noun}s`));
    this.chip.hidden = false;
    this.element.closest("details")?.setAttribute("open", "");
    this.update();
    this.element.scrollIntoView();
    if (this.shown.length > 0) this.cards.focus();
  }

  later() {
    if (!this.waits)
      requestAnimationFrame(() => {
        this.waits = false;
        this.update();
      });
    this.waits = true;
  }

  update() {
    const {view} = this;
    this.shown = this.images.filter(
        (image) => (!view.tag || image.tags.includes(view.tag)) &&
            (!view.text || image.name.toLowerCase().includes(view.text)) &&
            (!view.only || view.only(image)) &&
            (view.class === null ||
             [FOUND, TRUTH].some((kind) => visible(image, view)[kind].length > 0)));
    if (view.sort) {
      const {figure, sign} = view.sort;
      const key = (image) => image.figures[figure] ?? Infinity * sign;
      this.shown.sort(
          (a, b) =>
              (key(a) === key(b) ? 0 : sign * (key(a) < key(b) ? -1 : 1)) || a.index - b.index);
    }
    this.status.textContent = this.statusText();
    this.cards.show(this.shown, {size: view.size, panes: panesOf(view.show).length});
  }

  statusText() {
    const words = [`${this.shown.length} of ${counted(this.images.length, this.noun)}.`];
    let found = 0, wrong = 0, objects = 0, missed = 0;
    for (const image of this.shown) {
      const shown = visible(image, this.view);
      found += shown[FOUND].length;
      wrong += shown[FOUND].filter((one) => one.note).length;
      const judged = shown[TRUTH].filter((one) => one.found_at !== undefined);
      objects += judged.length;
      missed += judged.filter((one) => isMissed(one, this.view)).length;
    }
    if (this.judged)
      words.push(
          `${found} detections, ${wrong} of them wrong`,
          `(precision ${percent((found - wrong) / found)} %);`,
          `${missed} of ${objects} missed (recall ${percent((objects - missed) / objects)} %).`);
    else if (this.has(FOUND))
      words.push(`${counted(found, "detection")}.`);
    words.push("Enter enlarges; arrow keys select.");
    return words.join(" ");
  }

  content(image) {
    const figures = Object.entries(image.figures)
                        .map(([name, value]) => `${name} ${number(value, 3)}`)
                        .join(", ");
    return [
      h("span", {class: "panes"},
        panesOf(this.view.show)
            .map((kinds) => pane(image, kinds, this.view, this.classes, false).element)),
      h("b", {title: image.name}, image.name),
      h("small", {}, [figures, image.note].filter(Boolean).join(" · "))
    ];
  }

  enlarge(index) {
    const image = this.shown[index];
    if (!image) return;
    this.at = index;
    this.cards.place(index);
    this.enlarged.show(image, `${index + 1} of ${this.shown.length}`, this.view, this.classes);
  }
}
