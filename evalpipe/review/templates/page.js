"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const items = data.items, alone = new Set(data.alone);
  const at = (id) => document.getElementById(id);
  const said = {};
  const ofFile = () => { for (const item of items) said[item.item_id] = { labels: item.labels.slice(), note: item.note }; };
  ofFile();
  let place = 0, unsaved = false, who = "";

  // Labels of one reviewer are nobody else's: the browser keeps them under the handle, and none without one.
  const memory = () => "evalpipe-review-" + data.key + "-" + who;
  const keep = () => {
    unsaved = true;
    if (!who) { tell("Write your handle above, so that this browser keeps your labels."); return; }
    try { localStorage.setItem(memory(), JSON.stringify(said)); } catch (e) { tell("This browser keeps nothing: save often."); }
  };
  function enter(handle) {
    const name = handle.trim().toLowerCase();
    if (name === who) return true;
    if (!/^[a-z0-9][a-z0-9_.-]{0,39}$/.test(name)) {
      tell("A handle has at most 40 letters, digits, dots, dashes and underscores.");
      return false;
    }
    if (who) ofFile();
    who = name;
    const kept = (() => { try { return JSON.parse(localStorage.getItem(memory())) || {}; } catch (e) { return {}; } })();
    let n = 0;
    // What the file or this visit says already is newer than what the browser kept.
    for (const id in kept) if (id in said && !said[id].labels.length && kept[id].labels.length) { said[id] = kept[id]; n += 1; }
    if (unsaved) keep();
    at("discard").hidden = n === 0;
    tell(n ? "Restored " + n + " labels of " + who + " from an earlier visit." : "Labels are kept for " + who + ".");
    draw();
    return true;
  }
  function discard() {
    try { localStorage.removeItem(memory()); } catch (e) { /* nothing was kept */ }
    ofFile();
    at("discard").hidden = true;
    tell("Discarded: only the labels of the file are left.");
    draw();
  }
  const isDone = (item) => said[item.item_id].labels.length > 0;
  const tell = (text) => { at("said").textContent = text; };
  const labelsOf = (kind) => data.labels.filter((label) => label.kinds.includes(kind));

  function draw() {
    const item = items[place], mine = said[item.item_id], n = items.filter(isDone).length;
    document.body.className = item.kind;
    at("sample").textContent = data.name;
    at("bar").max = items.length; at("bar").value = n;
    at("count").textContent = n + " of " + items.length + " labelled";
    at("place").textContent = "Item " + (place + 1);
    at("kind").textContent = item.kind === "turn" ? "message of a person" : "call of a tool";
    at("lang").textContent = item.lang === "any" ? "" : item.lang;
    at("state").textContent = isDone(item) ? "labelled" : "open";
    at("state").className = "tag" + (isDone(item) ? " done" : "");
    at("before").hidden = !item.previous_request; at("previous").textContent = item.previous_request;
    at("answer").hidden = !item.agent_tail; at("tail").textContent = item.agent_tail;
    at("shown-title").textContent = item.kind === "turn" ? "Message to judge" : "Call to judge";
    at("shown").textContent = item.shown;
    at("note").value = mine.note;
    at("back").disabled = place === 0; at("next").disabled = place === items.length - 1;
    const list = at("labels");
    list.replaceChildren(...labelsOf(item.kind).map((label) => {
      const button = document.createElement("button"), key = document.createElement("kbd");
      const title = document.createElement("strong"), help = document.createElement("small");
      button.type = "button"; button.dataset.label = label.name;
      key.textContent = label.key; title.textContent = label.title; help.textContent = label.help;
      button.setAttribute("aria-pressed", String(mine.labels.includes(label.name)));
      if (mine.labels.length > 1 && mine.labels[0] === label.name) title.className = "first";
      button.append(key, title, help);
      button.addEventListener("click", (event) => choose(label.name, event.shiftKey));
      return button;
    }));
    for (const id of ["previous", "shown"]) at(id).scrollTop = 0;
    at("tail").scrollTop = at("tail").scrollHeight;
  }

  function choose(name, isMore) {
    const mine = said[items[place].item_id];
    if (!isMore) mine.labels = [name];
    else if (mine.labels.includes(name)) mine.labels = mine.labels.filter((other) => other !== name);
    else if (alone.has(name)) mine.labels = [name];
    else mine.labels = [...mine.labels.filter((other) => !alone.has(other)), name];
    keep();
    if (!isMore && place < items.length - 1) place += 1;
    draw();
    if (items.every(isDone)) tell("All items are labelled: save the file, and import it.");
  }

  function go(step) { place = Math.min(items.length - 1, Math.max(0, place + step)); draw(); }

  function toOpen() {
    for (let i = 1; i <= items.length; i++) {
      const next = (place + i) % items.length;
      if (!isDone(items[next])) { place = next; draw(); return; }
    }
    tell("No item is open.");
  }

  function text() {
    return items.filter(isDone).map((item) => JSON.stringify({ item_id: item.item_id, ...said[item.item_id], reviewer: who }) + "\n").join("");
  }

  function save() {
    if (!enter(at("who").value)) { at("who").focus(); return; }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text()], { type: "application/x-ndjson" }));
    link.download = data.name.replace(/\.[a-z]+$/i, "") + "." + who + ".labelled.jsonl";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    unsaved = false;
    tell("Saved as " + link.download + ". Now: evalpipe review import " + link.download + " --reviewer " + who);
  }

  // On a keyboard of another script the place of the key counts.
  const letter = (event) => /^[ -~]+$/.test(event.key) ? event.key.toLowerCase()
    : /^Key[A-Z]$/.test(event.code) ? event.code[3].toLowerCase() : event.key;

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && letter(event) === "s") { event.preventDefault(); save(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target === at("note")) { if (event.key === "Enter" || event.key === "Escape") at("note").blur(); return; }
    if (event.target === at("who")) { if (event.key === "Enter") at("who").blur(); return; }
    const label = labelsOf(items[place].kind).find((one) => one.key === letter(event));
    const onButton = event.target instanceof HTMLButtonElement;
    if (label) choose(label.name, event.shiftKey);
    else if (event.key === "ArrowRight" || (event.key === "Enter" && !onButton)) go(1);
    else if (event.key === "ArrowLeft" || event.key === "Backspace") go(-1);
    else if (event.key === " " && !onButton) toOpen();
    else if (event.key === "Delete") { said[items[place].item_id].labels = []; keep(); draw(); }
    else if (event.key === "/") at("note").focus();
    else return;
    event.preventDefault();
  });
  at("note").addEventListener("input", () => { said[items[place].item_id].note = at("note").value.trim(); keep(); });
  at("back").addEventListener("click", () => go(-1));
  at("next").addEventListener("click", () => go(1));
  at("todo").addEventListener("click", toOpen);
  at("save").addEventListener("click", save);
  at("who").addEventListener("change", () => enter(at("who").value));
  at("discard").addEventListener("click", discard);
  window.addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });
  window.evalpipeReview = { text, enter };
  place = Math.max(0, items.findIndex((item) => !isDone(item)));
  draw();
})();
