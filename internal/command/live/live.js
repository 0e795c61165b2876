// Puts each state that /events sends in the place of the one before. It changes only what differs, so that a
// selection, an open table, a scroll position and the focus stay.
'use strict';
(() => {
  const live = document.getElementById('live');
  const said = document.getElementById('said');
  let source = null, over = false, at = '';

  const say = text => { if (said.textContent !== text) said.textContent = text; };

  const change = (now, next) => {
    if (now.nodeType !== next.nodeType || now.nodeName !== next.nodeName) {
      now.replaceWith(next);
      return;
    }
    if (now.nodeType !== Node.ELEMENT_NODE) {
      if (now.nodeValue !== next.nodeValue) now.nodeValue = next.nodeValue;
      return;
    }
    for (const { name } of [...now.attributes]) {
      if (!next.hasAttribute(name) && name !== 'open') now.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
      if (now.getAttribute(name) !== value) now.setAttribute(name, value);
    }
    children(now, next);
  };

  const children = (now, next) => {
    const here = [...now.childNodes], there = [...next.childNodes];
    here.forEach((node, k) => k < there.length ? change(node, there[k]) : node.remove());
    now.append(...there.slice(here.length));
  };

  const show = event => {
    const next = new DOMParser().parseFromString('<div>\n' + event.data + '\n</div>', 'text/html').body.firstChild;
    children(live, next);
    const title = live.querySelector('h1');
    if (title) document.title = title.textContent;
    at = new Date().toLocaleTimeString();
    say('');
    live.dispatchEvent(new Event('shown'));
  };

  const stop = text => {
    over = true;
    source.close();
    say(text);
  };

  const open = () => {
    source = new EventSource('events');
    source.onmessage = show;
    source.addEventListener('end', () => stop(''));
    source.addEventListener('full', event => stop(event.data));
    source.onerror = () => {
      if (!over) say('There is no connection' + (at && ' since ' + at) + '. What this page shows has ended, or was killed: these are its last figures.');
      if (source.readyState === EventSource.CLOSED && !over) setTimeout(look, 5000);
    };
  };

  const look = () => {
    if (over) return;
    if (source) source.close();
    source = null;
    if (!document.hidden) open();
  };

  for (const plot of document.querySelectorAll('.plot')) plot.scrollLeft = plot.scrollWidth; // the latest is at the right
  document.addEventListener('visibilitychange', look);
  look();
})();
