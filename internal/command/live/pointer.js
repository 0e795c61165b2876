// Draws a line at the pointer on all plots, and shows the figures of that moment in their legends; without a line, the
// latest ones. A plot that has the focus takes the arrow keys, Home, End and Escape.
'use strict';
(() => {
  const live = document.getElementById('live');
  const told = document.getElementById('told');
  let x = null; // of the line, in the units of a drawing; null: there is none
  let begins = [], times = []; // of each moment

  const split = text => text === undefined ? [] : text.split('|');

  // A text that is empty repeats the one before it.
  const textAt = (texts, k) => {
    while (k > 0 && texts[k] === '') k--;
    return texts[k] || '';
  };

  const momentAt = place => place === null ? begins.length - 1 : Math.max(0, begins.findLastIndex(begin => begin <= place));

  const line = (svg, time) => {
    const { width, height } = svg.viewBox.baseVal;
    const side = x > width / 2 ? 'end' : 'start';
    const group = document.createElementNS(svg.namespaceURI, 'g');
    group.setAttribute('class', 'at');
    for (const [name, attributes] of [
      ['path', { d: `M${x} 8V${height - 20}` }],
      ['text', { x: side === 'end' ? x - 4 : x + 4, y: 19, 'text-anchor': side }],
    ]) {
      const node = document.createElementNS(svg.namespaceURI, name);
      for (const key in attributes) node.setAttribute(key, attributes[key]);
      if (name === 'text') node.textContent = time;
      group.append(node);
    }
    svg.append(group);
  };

  const show = () => {
    const { x: starts, t } = live.querySelector('#moments')?.dataset ?? {};
    begins = split(starts).map(Number);
    times = split(t);
    const k = momentAt(x);
    for (const figure of live.querySelectorAll('[data-v]')) figure.textContent = textAt(split(figure.dataset.v), k);
    for (const svg of live.querySelectorAll('.plot svg')) {
      svg.querySelector('.at')?.remove();
      if (x !== null && begins.length) line(svg, textAt(times, k));
    }
  };

  const move = (to) => {
    x = to;
    show();
  };

  const point = event => {
    const svg = event.target.closest?.('.plot')?.querySelector('svg');
    if (!svg || !begins.length) return x === null || move(null);
    const box = svg.getBoundingClientRect(), width = svg.viewBox.baseVal.width;
    const place = (event.clientX - box.left) / box.width * width;
    move(Math.min(width - 10, Math.max(begins[0], place)));
  };

  const press = event => {
    const plot = event.target.closest('.plot'), svg = plot?.querySelector('svg'), last = begins.length - 1;
    if (!svg || last < 0 || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key === 'Escape') move(null);
    const to = { ArrowLeft: momentAt(x) - 1, ArrowRight: momentAt(x) + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const k = Math.min(last, Math.max(0, to)), width = svg.viewBox.baseVal.width;
    move((begins[k] + (begins[k + 1] ?? width - 10)) / 2);
    plot.scrollLeft = x / width * plot.scrollWidth - plot.clientWidth / 2; // on a narrow screen
    told.textContent = [textAt(times, k), ...[...plot.previousElementSibling.children].map(key => key.textContent.trim())].join(', ');
  };

  document.addEventListener('pointermove', point);
  document.addEventListener('pointerdown', point);
  live.addEventListener('keydown', press);
  live.addEventListener('shown', show);
  show();
})();
