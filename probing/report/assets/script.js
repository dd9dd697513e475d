"use strict";
// everything is on the page already; this only shows one sentence, and one model or all, at a time
(() => {
  const find = (id) => document.getElementById(id);
  const controls = find("controls");
  if (!controls) return;
  const [sentence, model, previous, next] = ["sentence", "model", "previous", "next"].map(find);
  const count = sentence.options.length;

  // a tree that is cut off at the edge says so
  const cue = () => {
    for (const view of document.querySelectorAll(".trees-view")) {
      const scroll = view.querySelector(".scroll");
      view.classList.toggle("wider", scroll.scrollWidth > scroll.clientWidth + 1);
    }
  };
  const show = () => {
    for (const article of document.querySelectorAll("[data-example]")) {
      article.hidden = article.dataset.example !== sentence.value;
    }
    for (const figure of document.querySelectorAll("[data-model]")) {
      figure.hidden = model.value !== "" && figure.dataset.model !== model.value;
    }
    document.documentElement.classList.toggle("single", model.value !== "");
    cue();
  };
  const announce = () => {
    const name = model.options[model.selectedIndex].text;
    find("status").textContent = `Sentence ${sentence.value} of ${count}, model: ${name}`;
  };
  const change = () => {
    show();
    announce();
  };
  const step = (by) => {
    sentence.selectedIndex = (sentence.selectedIndex + by + count) % count;
    change();
  };

  sentence.addEventListener("change", change);
  model.addEventListener("change", change);
  previous.addEventListener("click", () => step(-1));
  next.addEventListener("click", () => step(1));
  window.addEventListener("resize", cue);
  previous.disabled = next.disabled = count < 2;
  controls.hidden = false;
  show();
})();
