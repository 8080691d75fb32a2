// Elements from data: text only ever becomes a text node, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element. Attributes: `class`, `onclick` and the like as functions, everything else as it is. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  dress(element, attributes);
  element.append(...children.flat(3).filter(present));
  return element;
}

/** Return an SVG element. */
export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  dress(element, attributes);
  element.append(...children.flat(3).filter(present));
  return element;
}

const present = (child) => child !== null && child !== undefined && child !== false && child !== "";

function dress(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Put children in the place of all that an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(3).filter(present));
}

/** Return the element of an id, which the page has. */
export const byId = (id) => document.getElementById(id);
