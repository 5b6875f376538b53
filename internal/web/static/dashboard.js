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

  // A form in which somebody has begun to write is left alone.
  document.addEventListener("input", (e) => { const f = e.target.closest("form"); if (f && f.method === "post") f.dataset.dirty = "yes"; });
  // A decision is sent once, however often the button is pressed.
  document.addEventListener("submit", (e) => {
    if (e.target.method !== "post") return;
    if (e.target.dataset.sent) { e.preventDefault(); return; }
    const item = e.target.closest("article.item"), sure = e.target.dataset.sure;
    if (item && !sure && e.submitter && "undo" in e.submitter.dataset && document.body.dataset.stream && window.EventSource) {
      e.preventDefault();
      hold(item, e.target, e.submitter);
      return;
    }
    delete e.target.dataset.sure;
    e.target.dataset.sent = "yes";
    if (!("quiet" in e.target.dataset) && !item || "aloud" in e.target.dataset || !document.body.dataset.stream || !window.EventSource) return;
    // The page with what is written on it stays.
    e.preventDefault();
    fetch(e.submitter?.hasAttribute("formaction") ? e.submitter.formAction : e.target.action, { method: "POST", body: new URLSearchParams(new FormData(e.target, e.submitter)), redirect: "manual", credentials: "same-origin" })
      .then((answer) => {
        if (answer.type !== "opaqueredirect") throw new Error("refused");
        if (item) { delete e.target.dataset.dirty; handled = [...document.querySelectorAll("article.item")].indexOf(item); stays = !!sure; }
      })
      .catch((why) => {
        if (why.message !== "refused") { unsent(e.target, e.submitter, sure); return; }
        delete e.target.dataset.sent;
        e.target.dataset.aloud = "yes";
        if (item) e.target.requestSubmit(e.submitter); // which shows why
      })
      .finally(() => { e.submitter?.blur(); dispatchEvent(new Event("answered")); });
  });
  addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((f) => delete f.dataset.sent));

  // What could not be sent says so, and is tried again until ralph answers.
  function unsent(form, button, sure) {
    const note = document.createElement("p");
    note.className = "undo";
    note.dataset.keep = "";
    note.setAttribute("role", "status");
    note.textContent = "Not sent: ralph cannot be reached. It will be tried again.";
    form.after(note);
    setTimeout(() => {
      note.remove();
      delete form.dataset.sent;
      if (!form.isConnected) return;
      if (sure) form.dataset.sure = sure;
      form.requestSubmit(button);
    }, 3000);
  }

  let handled = -1; // the place of what was decided last, until the page is without it
  let stays = false; // the focus has gone on since

  // What is rejected in a row can be taken back for a while. It is sent when that is over, with the
  // next one, and when the page is left; if none of that comes, it still waits.
  const undoTime = 10000;
  let held = null;
  function hold(item, form, button) {
    release();
    const note = document.createElement("p"), undo = document.createElement("button");
    note.className = "undo";
    note.dataset.keep = "";
    note.setAttribute("role", "status");
    undo.type = "button";
    undo.textContent = "Undo";
    undo.addEventListener("click", () => { takeBack(); item.focus(); });
    note.append(`“${button.textContent.trim()}” is carried out in ${undoTime / 1000} seconds. `, undo);
    form.after(note);
    held = { form, button, note, timer: setTimeout(release, undoTime) };
    const items = [...document.querySelectorAll("article.item")], next = items[items.indexOf(item) + 1];
    if (next) next.querySelector("details").open = true;
    (next || item).focus();
  }
  function takeBack() {
    const was = held;
    held = null;
    if (was) { clearTimeout(was.timer); was.note.remove(); }
    return was;
  }
  function release() {
    const was = takeBack();
    if (was && was.form.isConnected) { was.form.dataset.sure = "yes"; was.form.requestSubmit(was.button); }
  }
  addEventListener("pagehide", () => {
    const was = takeBack();
    if (was) fetch(was.button.hasAttribute("formaction") ? was.button.formAction : was.form.action, { method: "POST", body: new URLSearchParams(new FormData(was.form, was.button)), redirect: "manual", credentials: "same-origin", keepalive: true });
  });
  // What waits is gone through with j and k and opened with Enter; x chooses it, and digits choose an
  // answer that is offered. What is closed is only opened: nothing is decided that is not shown.
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select")) return;
    const items = [...document.querySelectorAll("article.item")], at = items.indexOf(e.target.closest("article.item"));
    if (e.key === "u") takeBack();
    else if (e.key === "j") items[at + 1]?.focus();
    else if (e.key === "k") items[Math.max(0, at - 1)]?.focus();
    if (at < 0) return;
    const row = items[at].querySelector("details"), digit = /^[1-9]$/.test(e.key);
    if (e.key === "x") items[at].querySelector(".pick input")?.click();
    else if (e.key === "Enter" && e.target === items[at]) row.open = !row.open;
    else if (digit && !row.open) row.open = true;
    else if (digit) items[at].querySelectorAll(".choice")[e.key - 1]?.click();
  });

  const body = document.body;
  const live = document.getElementById("live");
  const main = document.getElementById("main");
  const band = document.getElementById("band");

  // count runs down the time that a person has for an answer.
  function count() {
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

  // refresh takes the page anew, at most once in a while, and never twice at once.
  let wanted = false, busy = false;
  const pause = 700;
  async function refresh() {
    wanted = true;
    if (busy) return;
    busy = true;
    while (wanted) {
      wanted = false;
      try {
        const decided = handled;
        handled = -1;
        const answer = await fetch(location.href, { credentials: "same-origin", headers: { Accept: "text/html", "X-Refresh": decided < 0 ? "yes" : "decided" } });
        if (answer.ok && !answer.redirected) {
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          const fresh = page.getElementById("main");
          if (fresh && !("still" in body.dataset)) morph(main, document.adoptNode(fresh));
          const now = page.getElementById("band");
          if (now) { // it comes and goes above what is read and written, which stays where it is
            const before = main.getBoundingClientRect().top;
            morph(band, document.adoptNode(now));
            const moved = main.getBoundingClientRect().top - before;
            if (moved) scrollBy({ top: moved, behavior: "instant" });
          }
          count();
          if (decided >= 0) tell(page.querySelector(".said"), decided);
          const waiting = page.getElementById("nav-waiting");
          if (waiting) morph(document.getElementById("nav-waiting"), document.adoptNode(waiting));
          document.title = page.title;
        }
      } catch { /* the stream says that nobody answers */ }
      await new Promise((done) => setTimeout(done, pause));
    }
    busy = false;
  }

  addEventListener("answered", refresh);

  // tell says what came of a decision, and goes on with what stands in its place now.
  function tell(said, place) {
    const items = document.querySelectorAll("article.item"), next = items[Math.min(place, items.length - 1)];
    if (next && !stays) {
      next.querySelector("details").open = true;
      next.focus({ preventScroll: true });
    }
    const before = main.getBoundingClientRect().top;
    document.querySelector(".said")?.remove();
    if (said) main.before(document.adoptNode(said));
    scrollBy({ top: main.getBoundingClientRect().top - before, behavior: "instant" });
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
    const lines = list.firstElementChild;
    for (const li of [...page.body.firstChild.children]) lines.append(document.adoptNode(li));
    while (lines.childElementCount > most) lines.firstElementChild.remove();
    list.classList.remove("none");
    document.getElementById("stream-empty")?.remove();
    if (follows) list.scrollTop = list.scrollHeight;
  }
  if (transcript()) transcript().scrollTop = transcript().scrollHeight;

  // The stream. A page that nobody sees gives its connection back: browsers have
  // only a few for each server.
  let source = null, last = "", again = 0;
  function connect() {
    const to = new URL(body.dataset.stream, location.href);
    if (last) {
      const [event, line] = last.split(".");
      to.searchParams.set("after", event);
      if (to.searchParams.has("entry")) to.searchParams.set("entry", line);
    }
    source = new EventSource(to);
    source.onopen = () => { if (again) refresh(); again = 0; say("live", false); };
    source.onerror = () => {
      say("reconnecting", true);
      again++;
      // Some browsers give up where nobody listens; it may be started anew.
      if (source.readyState === EventSource.CLOSED && !document.hidden) {
        source.close();
        setTimeout(() => { if (!document.hidden) connect(); }, Math.min(10000, 500 * again));
      }
    };
    source.addEventListener("change", (e) => { last = e.lastEventId; refresh(); });
    source.addEventListener("entry", (e) => { last = e.lastEventId; entry(e.data); });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { source?.close(); say("paused", true); } else { connect(); refresh(); }
  });
  if (!document.hidden) connect();
  // Times go on, and a session has things to show that are no events.
  setInterval(() => { if (!document.hidden && source?.readyState === EventSource.OPEN) refresh(); }, document.querySelector(".running, #stream[data-keep]") ? 3000 : 30000);
})();
