(function () {
"use strict";
var d = document, root = d.documentElement;
function $(s, e) { return (e || d).querySelector(s); }
function $$(s, e) { return Array.prototype.slice.call((e || d).querySelectorAll(s)); }
function on(e, type, f) { if (e) e.addEventListener(type, f); }
function make(tag, cls, text) { var e = d.createElement(tag); e.className = cls; e.textContent = text; return e; }
root.classList.add("js");
$$("[data-js]").forEach(function (e) { e.hidden = false; });

var theme = $("#theme");
function paint(t) { if (t === "auto") root.removeAttribute("data-theme"); else root.setAttribute("data-theme", t); }
try { theme.value = localStorage.getItem("evalpipe-theme") || "auto"; } catch (e) { theme.value = "auto"; }
if (theme.selectedIndex < 0) theme.value = "auto";
paint(theme.value);
on(theme, "change", function () {
  paint(theme.value);
  try { localStorage.setItem("evalpipe-theme", theme.value); } catch (e) { return; }
});
on($("#print"), "click", function () { window.print(); });
on($("#save"), "click", function () {
  var blob = new Blob([$("#evalpipe-report").textContent], { type: "application/json" });
  var a = d.createElement("a");
  a.href = URL.createObjectURL(blob);
  a.download = "evalpipe-report.json";
  a.click();
  setTimeout(function () { URL.revokeObjectURL(a.href); }, 1000);
});

var table = $("table.forest");
if (table) {
  var body = $("tbody", table), rows = $$("tr", body), said = $("#said"), order = $("#order");
  var name = function (row) { return row.dataset.name; };
  var query = "", ranked = true;
  var refresh = function () {
    table.classList.toggle("free", !ranked || query !== "");
    order.hidden = ranked && query === "";
  };
  var clear = function () {
    rows.forEach(function (r) { r.classList.remove("sel", "tied", "apart"); });
    $$("button.pick", body).forEach(function (b) { b.setAttribute("aria-pressed", "false"); });
    said.textContent = "Choose a version's name to see which others it cannot be told apart from.";
  };
  rows.forEach(function (row) {
    var holder = $(".label", row);
    if (row.dataset.ties === undefined) return;
    var ties = row.dataset.ties.split(" "), button = make("button", "pick", "");
    button.type = "button";
    while (holder.firstChild) button.appendChild(holder.firstChild);
    holder.appendChild(button);
    on(button, "click", function () {
      var was = row.classList.contains("sel");
      clear();
      if (was) return;
      button.setAttribute("aria-pressed", "true");
      var tied = [];
      rows.forEach(function (r) {
        if (r === row) r.classList.add("sel");
        else if (ties.indexOf(r.dataset.i) >= 0) { r.classList.add("tied"); tied.push(name(r)); }
        else r.classList.add("apart");
      });
      said.textContent = name(row) + (tied.length ? " cannot be told apart from " + tied.join(", ") + "." : " is told apart from every other version.");
    });
  });
  on(d, "keydown", function (e) { if (e.key === "Escape") clear(); });
  clear();
  $$("thead th[data-key]", table).forEach(function (th) {
    var button = make("button", "sort", th.textContent.trim());
    button.type = "button";
    th.textContent = "";
    th.appendChild(button);
    on(button, "click", function () {
      var key = th.dataset.key, up = th.getAttribute("aria-sort") === "descending" || (key === "name" && !th.hasAttribute("aria-sort"));
      $$("thead th", table).forEach(function (o) { o.removeAttribute("aria-sort"); });
      th.setAttribute("aria-sort", up ? "ascending" : "descending");
      var sign = up ? 1 : -1;
      rows.slice().sort(function (a, b) {
        var x = a.dataset[key], y = b.dataset[key];
        if (key !== "name") { x = x === "" ? -Infinity * sign : +x; y = y === "" ? -Infinity * sign : +y; }
        return x === y ? a.dataset.i - b.dataset.i : (x < y ? -sign : sign);
      }).forEach(function (r) { body.appendChild(r); });
      ranked = key === "est" && !up;
      refresh();
    });
  });
  on($("#filter"), "input", function (e) {
    var n = 0;
    query = e.target.value.toLowerCase();
    rows.forEach(function (r) { r.hidden = name(r).toLowerCase().indexOf(query) < 0; n += r.hidden ? 0 : 1; });
    refresh();
    $("#matches").textContent = query ? n + " of " + rows.length + " shown" : "";
  });
}

var tip = $("#tip"), caps = $("#capabilities");
if (caps) {
  var panels = $$("svg.panel", caps), ids = caps.dataset.order.split(" ");
  on($("#light"), "change", function (e) {
    panels.forEach(function (p) {
      ids.forEach(function (id, n) { if (p.children.length > ids.length) p.children[n + 1].classList.toggle("hi", id === e.target.value); });
    });
  });
  $$("#buttons button").forEach(function (b, n, all) {
    on(b, "click", function () {
      all.forEach(function (o) { o.setAttribute("aria-pressed", String(o === b)); });
      $$(".caps.pick1 > .cell").forEach(function (c) { c.classList.toggle("on", c.dataset.s === String(n)); });
    });
  });
  panels.forEach(function (p) {
    on(p, "mousemove", function (e) {
      var n = Math.floor((e.clientY - p.getBoundingClientRect().top - 2) / +caps.dataset.pitch), id = ids[n];
      var row = id === undefined ? null : $("#num-" + p.parentNode.dataset.m + " tbody").rows[+id];
      if (!row) { tip.hidden = true; return; }
      tip.textContent = row.cells[0].textContent.trim() + ": " + row.cells[+p.parentNode.dataset.s + 1].textContent.trim();
      tip.hidden = false;
      tip.style.left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
      tip.style.top = e.clientY + 16 + "px";
    });
    on(p, "mouseleave", function () { tip.hidden = true; });
  });
}
})();
