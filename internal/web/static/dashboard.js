// Brings a page up to date while it is open. Without it every page works: it is as
// old as its last load, and forms are sent as browsers do.
"use strict";
(() => {
  // What a sign-in link has behind its # is never sent in an address.
  const form = document.getElementById("sign-in");
  const enter = () => {
    if (location.hash.length < 2) return;
    form.elements.token.value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, "", location.pathname + location.search);
    form.requestSubmit();
  };
  if (form) { addEventListener("hashchange", enter); enter(); return; }

  // What is written and not sent is kept in this browser, and given back to its form; it goes with what is sent, and
  // with signing out.
  const kind = "draft ";
  const fields = "form[method=post] textarea, form[method=post] input:not([type=hidden]):not([type=checkbox]):not([type=number])";
  const draftOf = (field) => kind + new URL(field.form.action).pathname + " " + field.name;
  function keep(field) {
    if (field.form?.id === "sign-in" || !field.name) return;
    if (field.value === field.defaultValue) localStorage.removeItem(draftOf(field)); else localStorage.setItem(draftOf(field), field.value);
  }
  function giveBack(within) {
    for (const field of within.querySelectorAll(fields)) {
      const kept = localStorage.getItem(draftOf(field));
      if (kept === null || field.value !== field.defaultValue || kept === field.value) continue;
      field.value = kept;
      field.form.dataset.dirty = "yes";
      const folded = field.closest("details:not([open])");
      if (folded) folded.open = true;
    }
  }
  const names = (form) => [...form.querySelectorAll(fields)].map(draftOf);
  const forget = (drafts) => drafts.forEach((d) => localStorage.removeItem(d));
  // A form in which somebody has begun to write is left alone.
  document.addEventListener("input", (e) => {
    const f = e.target.closest("form");
    if (f && f.method === "post") { f.dataset.dirty = "yes"; keep(e.target); }
  });

  const streams = document.body.dataset.stream && window.EventSource;
  const here = (form) => new URL(form.elements.back?.value || location.href, location.href).pathname === location.pathname;
  // A decision is sent once, however often the button is pressed, and the page with what is written on it stays.
  document.addEventListener("submit", (e) => {
    const form = e.target, button = e.submitter;
    if (form.method !== "post") return;
    if (form.action.endsWith("/sign-out")) { Object.keys(localStorage).filter((k) => k.startsWith(kind)).forEach((k) => localStorage.removeItem(k)); return; }
    if (form.dataset.sent) { e.preventDefault(); return; }
    form.dataset.sent = "yes";
    if (!streams || !here(form)) { sessionStorage.setItem("sent", JSON.stringify(names(form))); return; }
    e.preventDefault();
    const sent = {
      to: button?.hasAttribute("formaction") ? button.formAction : form.action, body: new URLSearchParams(new FormData(form, button)),
      label: [...(button || form).childNodes].map((n) => n.textContent.trim().split("\n")[0]).find((said) => said), form, drafts: names(form), tries: 0,
      row: form.closest("article.item")?.dataset.row || form.closest("li[id^='w-']")?.id,
    };
    if (sent.row && !form.action.includes("/permissions/")) hold(sent); else send(sent);
  });
  addEventListener("pageshow", () => {
    document.querySelectorAll("form[data-sent]").forEach((f) => delete f.dataset.sent);
    if (document.querySelector(".flash:not(.bad)")) forget(JSON.parse(sessionStorage.getItem("sent") || "[]"));
    sessionStorage.removeItem("sent");
    giveBack(document);
  });

  // note says something beside a form, or in the corner if the form is gone.
  function note(sent, text, bad) {
    sent.note?.remove();
    sent.note = null;
    if (!text) return;
    const p = sent.note = document.createElement("p");
    p.className = bad ? "flash bad" : "undo";
    p.dataset.keep = "";
    p.setAttribute("role", bad ? "alert" : "status");
    p.append(...[text].flat());
    if (sent.form.isConnected && !sent.row) sent.form.after(p); else corner().append(p);
  }
  function corner() {
    let c = document.getElementById("corner");
    if (!c) {
      c = document.createElement("div");
      c.id = "corner";
      document.body.append(c);
    }
    return c;
  }

  // send carries out what was decided. What could not be sent says so, and is tried again until ralph answers, and once
  // more when the page is left.
  const unsent = new Map(); // what is tried again, by its timer
  function again(sent, last) {
    clearTimeout(unsent.get(sent));
    unsent.delete(sent);
    send(sent, last);
  }
  async function send(sent, last) {
    let answer;
    try {
      answer = await fetch(sent.to, { method: "POST", body: sent.body, redirect: "manual", credentials: "same-origin", keepalive: last });
    } catch {
      note(sent, (sent.row ? `“${sent.label}”: ` : "") + "Not sent: ralph cannot be reached. It will be tried again.");
      sent.tries++;
      unsent.set(sent, setTimeout(again, Math.min(10000, 2000 + 1000 * sent.tries), sent));
      return;
    }
    delete sent.form.dataset.sent;
    note(sent, "");
    if (answer.type !== "opaqueredirect") {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      shown(sent.row, true);
      const out = page.querySelector("a[href^='/sign-in']") && !page.querySelector("form[action='/sign-out']");
      const way = document.createElement("a");
      way.href = "/sign-in?next=" + encodeURIComponent(location.pathname + location.search);
      way.textContent = "Sign in";
      note(sent, out ? ["You are signed out. Your text is kept. ", way] : page.querySelector(".flash.bad")?.textContent || "ralph refused it.", true);
      const refusal = sent.note;
      setTimeout(() => { if (sent.row) refusal.remove(); }, 20000);
      refresh();
      return;
    }
    forget(sent.drafts);
    delete sent.form.dataset.dirty;
    if (!sent.row) {
      sent.form.reset();
      if (sent.form.contains(document.activeElement)) document.activeElement.blur(); // it may go
    }
    decided = true;
    refresh(true);
  }

  // In the inbox a decision can be taken back for a while. It is sent when that is over, with the next one, and when the
  // page is left; if none of that comes, it still waits.
  const undoTime = 10000;
  const gone = new Set(); // rows that are decided on or left for later, by id
  let held = null, decided = false;
  const rows = () => [...document.querySelectorAll("#rows li:not([hidden])")];
  function shown(row, yes) {
    if (!row) return;
    if (yes) gone.delete(row); else gone.add(row);
    const li = document.getElementById(row);
    if (li) li.hidden = !yes;
  }
  function hold(sent) {
    release();
    const next = beside(sent.row);
    shown(sent.row, false);
    const undo = document.createElement("button"), key = document.createElement("kbd"), left = document.createElement("span");
    undo.type = "button";
    key.textContent = "u";
    undo.append("Undo ", key);
    undo.addEventListener("click", takeBack);
    left.className = "dim";
    left.dataset.left = undoTime / 1000;
    note(sent, [sent.row.replace(/^w-.*-(\d+)-\d+$/, "TASK-$1: ").replace("TASK-0: ", "") + sent.label, undo, left]);
    held = { sent, timer: setTimeout(release, undoTime) };
    count();
    if (document.getElementById("rows")) go(next);
  }
  function takeBack() {
    if (!held) return;
    const { sent, timer } = held;
    clearTimeout(timer);
    held = null;
    note(sent, "");
    delete sent.form.dataset.sent;
    shown(sent.row, true);
    if (document.getElementById("rows")) go(document.getElementById(sent.row));
  }
  function release(last) {
    if (!held) return;
    const { sent, timer } = held;
    clearTimeout(timer);
    held = null;
    note(sent, "");
    send(sent, last === true);
  }
  addEventListener("pagehide", () => { release(true); for (const sent of [...unsent.keys()]) again(sent, true); });

  // beside is the row after another one, or before it if it is the last: by what it is, not where it was.
  const current = () => document.querySelector("#pane article.item")?.dataset.row;
  function beside(row) {
    const all = rows(), at = all.findIndex((r) => r.id === row);
    return all[at + 1] || all[at - 1] || null;
  }
  function step(row, by) {
    const all = rows(), at = all.findIndex((r) => r.id === row), to = at < 0 ? all[0] : all[at + by];
    if (to) go(to);
  }
  // go shows an item whole.
  let wants = "";
  function go(row) {
    const pane = document.getElementById("pane");
    if (!row) { pane.replaceChildren(); return; }
    wants = row.id;
    const link = row.querySelector("a.to");
    document.querySelectorAll("#rows a.to").forEach((l) => { if (l === link) l.setAttribute("aria-current", "true"); else l.removeAttribute("aria-current"); });
    history.replaceState(null, "", link.href);
    document.querySelector(".triage").classList.add("asked");
    row.scrollIntoView({ block: "nearest" });
    refresh(true);
  }
  document.addEventListener("click", (e) => {
    const link = e.target.closest?.("#rows a.to, a.member");
    if (!link || e.ctrlKey || e.metaKey || e.shiftKey || !streams) return;
    e.preventDefault();
    if (!link.matches(".member")) { go(link.closest("li")); return; }
    history.replaceState(null, "", link.href); // another one of those that are alike
    wants = current();
    refresh(true);
  });
  // A filter acts at once.
  document.addEventListener("change", (e) => { if (e.target.matches("form.filters select, form.filters [type=checkbox]")) e.target.form.requestSubmit(); });
  // A search shows its results while a person types; Enter opens their page.
  let typed = null;
  document.addEventListener("input", (e) => {
    const list = document.getElementById(e.target.dataset.finds), words = e.target.value;
    if (!list) return;
    clearTimeout(typed);
    typed = setTimeout(async () => {
      try {
        const answer = await fetch("/search?q=" + encodeURIComponent(words), { credentials: "same-origin", headers: { "X-Refresh": "yes" } });
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        if (e.target.value === words) list.replaceChildren(...(page.getElementById("results")?.childNodes || []));
      } catch { /* ralph is away */ }
    }, 150);
  });
  // The field that an address names has the focus, and else that of a followed session. A phone would open its keyboard.
  if (matchMedia("(min-width: 40rem)").matches) {
    const field = document.getElementById(location.hash.slice(1) || "say-text");
    if (field?.matches(location.hash ? "input, textarea" : ".tell textarea")) field.focus({ preventScroll: !location.hash });
  }
  let jump = 0;
  document.addEventListener("keydown", (e) => {
    if ((e.ctrlKey || e.metaKey) && e.key === "Enter" && e.target.matches("input, textarea")) {
      e.preventDefault();
      e.target.form?.requestSubmit(e.target.form.querySelector("button.primary") || undefined);
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "Escape" && e.target.matches("input, textarea")) { e.target.blur(); return; }
    if (e.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
    if (e.key === "/") { e.preventDefault(); document.getElementById("find")?.focus(); return; }
    if (e.key === "?") { document.getElementById("keys")?.showModal(); return; }
    const places = { n: "/", i: "/inbox", t: "/tasks", h: "/runs" };
    if (Date.now() - jump < 1500 && places[e.key]) { location.assign(places[e.key]); return; }
    jump = e.key === "g" ? Date.now() : 0;
    if (e.key === "u") { takeBack(); return; }
    if (e.key === "n") { location.assign("/tasks?add=yes#title0"); return; }
    const pane = document.getElementById("pane");
    if (!pane && (e.key === "j" || e.key === "k")) {
      const all = [...document.querySelectorAll("main .rows a.to, main tbody th a")].filter((a) => a.checkVisibility());
      const at = all.indexOf(document.activeElement.closest("li, tr")?.querySelector("a.to, th a"));
      all[Math.max(0, Math.min(all.length - 1, at + (e.key === "j" ? 1 : -1)))]?.focus();
    }
    if (!pane || !streams) return;
    const row = wants || current(); // keys may be faster than the page
    const press = (button) => {
      if (!button) return;
      e.preventDefault();
      const empty = button.formNoValidate ? null : button.form?.querySelector(":invalid");
      if (empty) say("it needs a word: Enter", false); else button.click();
    };
    if (e.key === "j") step(row, 1);
    else if (e.key === "k") step(row, -1);
    else if (e.key === "e") { const next = beside(row); shown(row, false); go(next); }
    else if (e.key === "x") document.getElementById(row)?.querySelector(".pick input")?.click();
    else if (e.key === "Enter" && !e.target.closest("a, button, summary")) { e.preventDefault(); pane.querySelector("textarea, input:not([type=hidden]), button")?.focus(); }
    else if ("ard".includes(e.key) && document.querySelector(".pick :checked")) press(document.querySelector("#many button"));
    else if (wants && wants !== current()) return; // nothing is decided that is not shown yet
    else if (/^[1-9]$/.test(e.key)) press(pane.querySelectorAll(".choice")[e.key - 1]);
    else if ("ardtA".includes(e.key)) press(pane.querySelector(`[data-key="${e.key}"]`));
  });

  const body = document.body;
  const live = document.getElementById("live");
  const main = document.getElementById("main");
  const band = document.getElementById("band");

  // count runs down the time that a person has for an answer, and up the time that a session takes.
  function count() {
    for (const e of document.querySelectorAll("[data-clock]")) {
      if (e.seen !== e.dataset.clock) { e.seen = e.dataset.clock; e.from = performance.now(); }
      const s = Math.round(+e.seen + (performance.now() - e.from) / 1000), two = (n) => String(n).padStart(2, "0");
      e.textContent = s < 60 ? s + " s" : s < 3600 ? `${Math.floor(s / 60)} min ${two(s % 60)} s` : `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} min`;
    }
    for (const e of document.querySelectorAll("[data-left]")) {
      if (e.seen !== e.dataset.left) { e.seen = e.dataset.left; e.from = performance.now(); }
      const left = Math.max(0, Math.round(e.seen - (performance.now() - e.from) / 1000));
      const two = (n) => String(n).padStart(2, "0");
      const hours = Math.floor(left / 3600);
      e.textContent = (hours ? hours + ":" + two(Math.floor(left / 60) % 60) : Math.floor(left / 60)) + ":" + two(left % 60);
    }
  }
  count();
  setInterval(count, 1000);
  if (!body.dataset.stream || !live || !window.EventSource) return;

  // morph makes a node like another one and keeps what is the same: what has the
  // focus, what is written, what is opened and where it is scrolled to.
  function morph(from, to) {
    if (from.isEqualNode(to) || kept(from) || from.dataset && from.dataset.dirty) return;
    if (from.nodeType !== Node.ELEMENT_NODE) { from.nodeValue = to.nodeValue; return; }
    for (const a of [...from.attributes]) {
      if (!to.hasAttribute(a.name) && a.name !== "open" && a.name !== "data-sent") from.removeAttribute(a.name);
    }
    for (const a of to.attributes) if (a.name !== "open" && from.getAttribute(a.name) !== a.value) from.setAttribute(a.name, a.value);
    children(from, to);
  }
  const inUse = (n) => n.contains?.(document.activeElement) || n.matches?.("form[data-dirty]") || n.querySelector?.("form[data-dirty]");
  const kept = (n) => n.dataset && "keep" in n.dataset;
  function children(from, to) {
    const named = new Map();
    for (const c of from.children) if (c.id) named.set(c.id, c);
    let at = from.firstChild;
    for (const want of [...to.childNodes]) {
      while (at && kept(at) && !at.id) at = at.nextSibling;
      let have = named.get(want.id);
      if (!want.id) {
        // The next of its kind that has no name to wait for.
        have = at;
        while (have && (have.id || kept(have) || have.nodeName !== want.nodeName)) have = have.nextSibling;
      }
      if (!have || have.parentNode !== from) {
        from.insertBefore(want, at);
        if (want.id) want.classList.add("fresh");
        continue;
      }
      // Only what has a name is moved: whatever is moved loses its focus and its scrolling.
      while (at && at !== have && !want.id && at.nodeType === Node.TEXT_NODE) {
        const next = at.nextSibling;
        at.remove();
        at = next;
      }
      if (have === at) at = at.nextSibling;
      else from.insertBefore(have, at);
      morph(have, want);
    }
    while (at) {
      const next = at.nextSibling;
      if (!kept(at) && !inUse(at)) at.remove();
      at = next;
    }
  }

  // refresh takes the page anew, at most once in a while, and never twice at once; now is for what a person waits for.
  let wanted = false, busy = false, wake = null;
  const pause = 2000;
  async function refresh(now) {
    wanted = true;
    if (now && wake) wake();
    if (busy) return;
    busy = true;
    while (wanted) {
      wanted = false;
      try {
        const flash = decided, address = location.href;
        decided = false;
        const answer = await fetch(address, { credentials: "same-origin", headers: { Accept: "text/html", "X-Refresh": flash ? "decided" : "yes" } });
        if (answer.ok && !answer.redirected && address === location.href) {
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          if (address === location.href) take(page, flash);
        } else if (flash) decided = true;
        if (address !== location.href) { wanted = true; continue; } // a person went on
      } catch { /* the stream says that nobody answers */ }
      await new Promise((done) => { wake = done; setTimeout(done, pause); });
      wake = null;
    }
    busy = false;
  }

  // take brings the page up to date with a newer one.
  function take(page, flash) {
    const fresh = page.getElementById("main"), now = page.getElementById("band");
    if (fresh && !("still" in body.dataset)) {
      document.adoptNode(fresh);
      const pane = document.getElementById("pane"), shows = fresh.querySelector("#pane article.item");
      if (pane && shows?.id !== pane.querySelector("article.item")?.id) {
        const other = fresh.querySelector("#pane");
        if (wants || !inUse(pane)) pane.replaceChildren(...other.cloneNode(true).childNodes);
        else other.replaceChildren(...pane.cloneNode(true).childNodes); // it is gone, and somebody writes in it
      }
      if (pane && wants) {
        pane.scrollTop = 0;
        if (matchMedia("(max-width: 60rem)").matches) scrollTo({ top: 0, behavior: "instant" });
      }
      wants = ""; // the page is the answer to what was wanted, also if that does not wait any more
      const before = pane ? document.activeElement : null;
      morph(main, fresh);
      for (const id of gone) { const li = document.getElementById(id); if (li) li.hidden = true; }
      giveBack(main);
      if (before && !before.isConnected) document.querySelector("#pane article.item")?.focus({ preventScroll: true });
    }
    const above = main.getBoundingClientRect().top; // what comes and goes above what is read leaves that where it is
    if (now) morph(band, document.adoptNode(now));
    if (flash) {
      document.querySelector(".said")?.remove();
      const said = page.querySelector(".said");
      if (said) main.before(document.adoptNode(said));
    }
    const moved = main.getBoundingClientRect().top - above;
    if (moved && getComputedStyle(body).overflow !== "hidden") scrollBy({ top: moved, behavior: "instant" });
    count();
    const waiting = page.getElementById("nav-waiting");
    if (waiting) morph(document.getElementById("nav-waiting"), document.adoptNode(waiting));
    document.title = page.title;
  }

  // say tells how it stands, and screen readers only when that changes.
  function say(text, off) {
    if (live.textContent !== text) live.textContent = text;
    live.classList.toggle("off", off);
  }

  // entry goes on with the transcript of a session that is followed.
  const most = 1500;
  const transcript = () => document.getElementById("stream");
  function entry(html) {
    const list = transcript();
    if (!list) return;
    const follows = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    const page = new DOMParser().parseFromString("<ol>" + html + "</ol>", "text/html");
    const lines = list.querySelector("ol");
    for (const li of [...page.body.firstChild.children]) { lines.append(document.adoptNode(li)); unread++; }
    while (lines.childElementCount > most) lines.firstElementChild.remove();
    list.classList.remove("none");
    document.getElementById("stream-empty")?.remove();
    if (follows) newest(); else tellNew();
  }
  // Where somebody has scrolled up, a button says how much came since, and leads to it.
  let unread = 0;
  const newer = () => document.getElementById("newer");
  function newest() {
    const list = transcript();
    if (list) list.scrollTop = list.scrollHeight;
    unread = 0;
    tellNew();
  }
  function tellNew() {
    const button = newer();
    if (!button) return;
    button.hidden = !unread;
    button.querySelector("span").textContent = unread;
  }
  document.addEventListener("click", (e) => { if (e.target.closest?.("#newer")) newest(); });
  document.addEventListener("scroll", (e) => {
    const list = transcript();
    if (e.target === list && unread && list.scrollHeight - list.scrollTop - list.clientHeight < 40) newest();
  }, true);
  newest();

  // The stream. A page that nobody sees gives its connection back: browsers have
  // only a few for each server.
  let source = null, last = "", failures = 0, fresh = Date.now();
  function connect() {
    const to = new URL(body.dataset.stream, location.href);
    if (last) {
      const [event, line] = last.split(".");
      to.searchParams.set("after", event);
      if (to.searchParams.has("entry")) to.searchParams.set("entry", line);
    }
    source = new EventSource(to);
    source.onopen = () => { if (failures) refresh(); failures = 0; fresh = Date.now(); body.classList.remove("old"); say("live", false); };
    source.onerror = () => {
      if (!failures) fresh = Date.now();
      const old = Date.now() - fresh > 10000; // the figures on the page are not of now
      say(old ? "as of " + new Date(fresh).toTimeString().slice(0, 5) : "reconnecting", true);
      body.classList.toggle("old", old);
      failures++;
      // Some browsers give up where nobody listens; it may be started anew.
      if (source.readyState === EventSource.CLOSED && !document.hidden) {
        source.close();
        setTimeout(() => { if (!document.hidden) connect(); }, Math.min(10000, 500 * failures));
      }
    };
    source.addEventListener("change", (e) => { last = e.lastEventId; refresh(); });
    source.addEventListener("entry", (e) => { last = e.lastEventId; entry(e.data); });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { source?.close(); say("paused", true); } else { connect(); refresh(); }
  });
  // A hidden page keeps the number in its title true.
  setInterval(async () => {
    if (!document.hidden) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", headers: { Accept: "text/html", "X-Refresh": "yes" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (answer.ok && document.hidden) document.title = page.title;
    } catch { /* ralph is away */ }
  }, 20000);
  if (!document.hidden) connect();
  // Times go on, and a session has things to show that are no events.
  setInterval(() => { if (!document.hidden && source?.readyState === EventSource.OPEN) refresh(); }, document.querySelector(".running") ? 10000 : 30000);
})();
