'use strict';
// The live page's scripts without a browser: what the model computes, and what the page does with
// answers and clicks. test_page_script.py runs it under node.

const test = require('node:test');
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');

const PAGE = path.join(__dirname, '../../proxy/process/page');
const source = (name) => fs.readFileSync(path.join(PAGE, name), 'utf8');

// Values of another realm are compared by what they hold.
const plain = (value) => JSON.parse(JSON.stringify(value));

// --- the model

const NAMES = ['Model', 'Rows', 'SECONDS_MAX', 'POINTS_MAX', 'rateOf', 'largestOf', 'number', 'rate',
  'percent', 'small', 'bytes', 'time', 'span', 'uptime', 'clock'];
const m = vm.runInNewContext(`${source('model.js')};({${NAMES.join(', ')}})`);

// Rows of a second each that end at these seconds.
function rows(ends, values) {
  return {end: ends.map((s) => s * 1000), span: ends.map(() => 1000), values};
}

function live(ends, values, uptime = 100) {
  return {
    process: {now_ms: ends.length === 0 ? 0 : ends[ends.length - 1] * 1000},
    stats: {uptime_seconds: uptime},
    history: {seconds: rows(ends, values), minutes: rows([], {})},
  };
}

test('rows that are known are passed over, and new columns begin with zeros', () => {
  const known = new m.Rows(10);
  known.add(rows([1, 2], {a: [1, 2]}));
  known.add(rows([2, 3], {a: [9, 3], b: [9, 7]}));
  assert.deepEqual(plain(known.ends), [1000, 2000, 3000]);
  assert.deepEqual(plain(known.columns.get('a')), [1, 2, 3]);
  assert.deepEqual(plain(known.columns.get('b')), [0, 0, 7]);
  known.add(rows([3], {a: [5]}));
  assert.equal(known.ends.length, 3);
  // A column that an answer leaves out is 0 there.
  known.add(rows([4], {b: [1]}));
  assert.deepEqual(plain(known.columns.get('a')), [1, 2, 3, 0]);
});

test('rows beyond the most leave at the front, in all columns alike', () => {
  const few = new m.Rows(3);
  few.add(rows([1, 2, 3, 4, 5], {a: [1, 2, 3, 4, 5]}));
  assert.deepEqual(plain(few.ends), [3000, 4000, 5000]);
  assert.deepEqual(plain(few.columns.get('a')), [3, 4, 5]);
  assert.equal(few.spans.length, 3);
  assert.equal(few.last, 5000);
});

test('a sum is of rows that began in the time, and quantiles of nothing count nothing', () => {
  const some = new m.Rows(10);
  some.add(rows([1, 2, 3, 4], {a: [1, null, 4, 8]}));
  assert.equal(some.from(0), 0);
  assert.equal(some.from(1000), 1);
  assert.equal(some.from(1001), 2);
  assert.equal(some.from(9000), 4);
  assert.equal(some.sum(['a', 'absent'], 1), 12);
  assert.equal(some.sum(['a'], 0, 3), 5);
  assert.equal(some.seconds(1), 3);
});

test('rates and ratios are of the last seconds, and null where there were none', () => {
  const model = new m.Model();
  model.take(live([1, 2, 3, 4], {hits: [0, 1, 1, 2], all: [10, 2, 2, 4]}));
  assert.deepEqual(plain(model.recent(['all'], 2)), {sum: 6, seconds: 2, rate: 3});
  assert.equal(model.ratio(['hits'], ['all'], 3), 0.5);
  assert.equal(model.ratio(['hits'], ['absent'], 3), null);
  const empty = new m.Model();
  empty.take(live([], {}));
  assert.equal(empty.recent(['all'], 10).rate, null);
  assert.equal(empty.latest('p50'), null);
});

test('the latest quantile is the last that was one, of a minute', () => {
  const model = new m.Model();
  const ends = Array.from({length: 100}, (_, i) => i + 1);
  const column = ends.map(() => null);
  column[30] = 7;
  model.take(live(ends, {p50: column}));
  assert.equal(model.latest('p50'), null);
  column[50] = 8;
  column[60] = 0;
  const again = new m.Model();
  again.take(live(ends, {p50: column}));
  assert.equal(again.latest('p50'), 8);
});

test('another process has a history of its own', () => {
  const model = new m.Model();
  assert.equal(model.take(live([1, 2], {a: [1, 1]}, 100)), false);
  assert.equal(model.since, 2000);
  assert.equal(model.take(live([3], {a: [1]}, 101)), false);
  // Rounded down, the same process may show a second less.
  assert.equal(model.take(live([4], {a: [1]}, 100.5)), false);
  assert.equal(model.seconds.ends.length, 4);
  assert.equal(model.take(live([5], {a: [1]}, 2)), true);
  assert.deepEqual(plain(model.seconds.ends), [5000]);
});

test('a point of a chart stays what it is when rows come behind it', () => {
  const model = new m.Model();
  const range = 3 * m.POINTS_MAX;  // three rows a point
  const ends = Array.from({length: 20}, (_, i) => i + 1);
  model.take(live(ends, {a: ends.map((s) => s)}));
  const before = plain(model.points(['a'], range, m.rateOf));
  model.take(live([21, 22], {a: [21, 22]}));
  const after = plain(model.points(['a'], range, m.rateOf));
  assert.deepEqual(after.slice(0, before.length - 1), before.slice(0, -1));
  assert.deepEqual(before[1], {x: 5000, y: 4});  // the rows 3, 4 and 5
  assert.equal(plain(model.points(['a'], range, m.largestOf))[1].y, 5);
  assert.equal(plain(model.points(['absent'], range, m.largestOf))[1].y, null);
});

test('numbers are written as people read them', () => {
  const cases = [
    [m.rate, [[null, '–'], [0, '0'], [0.00001, '<0.0001'], [0.0012, '0.0012'], [0.5, '0.50'],
      [12.345, '12.3'], [1234.5, '1,235']]],
    [m.percent, [[null, '–'], [0, '0.0 %'], [0.9996, '100.0 %'], [0.1234, '12.3 %']]],
    [m.small, [[null, '–'], [0, '0'], [0.01, '1.00 %'], [1e-7, '1 in 10,000,000']]],
    [m.bytes, [[null, '–'], [0, '0 B'], [1023, '1023 B'], [1024, '1.00 KiB'], [10 * 1024, '10.0 KiB'],
      [100 * 1024, '100 KiB'], [1024 ** 2, '1.00 MiB'], [1024 ** 6, '1024 PiB']]],
    [m.time, [[null, '–'], [0.0000123, '12.3 µs'], [0.0123, '12.3 ms'], [1.5, '1.50 s'], [119, '119 s'],
      [120, '2 min']]],
    [m.span, [[null, '–'], [Infinity, '–'], [59, '59 s'], [60, '1 min'], [5400, '1.5 h'],
      [48 * 3600, '2.0 days'], [200 * 86400, '200 days']]],
    [m.uptime, [[59.9, '00:00:59'], [3661, '01:01:01'], [90061, '1 d 01:01:01']]],
  ];
  for (const [write, pairs] of cases) {
    for (const [value, text] of pairs) assert.equal(write(value), text, `${write.name}(${value})`);
  }
});

// --- the page

// As much of an element as the page's scripts use.
class Element {
  constructor(tag) {
    this.tag = tag;
    this.children = [];
    this.parent = null;
    this.text = '';
    this.dataset = {};
    this.style = {};
    this.attributes = {};
    this.listeners = {};
    this.classes = new Set();
    this.classList = {
      toggle: (name, on) => { if (on) this.classes.add(name); else this.classes.delete(name); },
      add: (name) => this.classes.add(name),
      remove: (name) => this.classes.delete(name),
    };
    this.hidden = false;
    this.disabled = false;
    this.checked = false;
    this.value = '';
  }

  get textContent() { return this.text + this.children.map((child) => child.textContent).join(''); }
  set textContent(text) { this.text = text; this.children = []; }
  set innerHTML(text) { throw new Error(`markup is made of ${text}`); }
  get firstElementChild() {
    if (this.children.length === 0) this.append(new Element('i'));
    return this.children[0];
  }
  get lastElementChild() { return this.children[this.children.length - 1]; }
  get tBodies() { return [this]; }
  append(...added) { for (const one of added) { one.parent = this; this.children.push(one); } }
  remove() { this.parent.children.splice(this.parent.children.indexOf(this), 1); }
  replaceChildren() { this.children = []; }
  setAttribute(name, value) { this.attributes[name] = value; }
  addEventListener(name, listener) { this.listeners[name] = listener; }
  focus() {}
  fire(name) { return this.listeners[name]({preventDefault() {}, target: this}); }
}

// The page with answers of the test. `answers` is asked for each fetch.
function open(answers) {
  const elements = new Map();
  const element = (id) => {
    if (!elements.has(id)) elements.set(id, new Element(id));
    return elements.get(id);
  };
  const asked = [];
  const waits = [];
  const context = vm.createContext({
    document: {
      getElementById: element, createElement: (tag) => new Element(tag),
      createElementNS: (_, tag) => new Element(tag), querySelectorAll: () => [], querySelector: () => null,
      documentElement: new Element('html'), body: new Element('body'), hidden: false, addEventListener() {},
    },
    localStorage: {getItem: () => null, setItem() {}},
    matchMedia: () => ({matches: false, addEventListener() {}}),
    getComputedStyle: () => ({getPropertyValue: () => '', fontFamily: ''}),
    performance: {now: () => 0},
    setTimeout: (call) => waits.push(call),
    URLSearchParams, Intl,
    fetch: async (what, options) => {
      asked.push({what, ...options});
      const answer = answers(what, options);
      if (answer instanceof Error) throw answer;
      return {ok: answer.fault === undefined, text: async () => answer.fault, json: async () => answer};
    },
  });
  vm.runInContext(source('model.js') + source('charts.js') + source('page.js'), context);
  const settle = async () => { for (let i = 0; i < 30; i++) await null; };
  return {element, asked, settle, turn: async () => { waits.shift()(); await settle(); }};
}

const GONE = new Error('gone');

test('an unanswered question is a fault once it is the second, and the page says since when', async () => {
  const page = open(() => GONE);
  page.element('trouble').hidden = true;
  await page.settle();
  assert.equal(page.element('trouble').hidden, true);
  await page.turn();
  assert.equal(page.element('trouble').hidden, false);
  assert.match(page.element('trouble').textContent, /^No response for 2 s/);
  assert.equal(page.element('state').textContent, 'gone');
  await page.turn();
  assert.match(page.element('trouble').textContent, /^No response for 3 s/);
});

test('a paused page asks nothing', async () => {
  const page = open(() => GONE);
  await page.settle();
  const before = page.asked.length;
  page.element('pause').fire('click');
  await page.turn();
  await page.turn();
  assert.equal(page.asked.length, before);
  assert.equal(page.element('pause').attributes['aria-pressed'], 'true');
  page.element('pause').fire('click');
  await page.turn();
  assert.equal(page.asked.length, before + 1);
});

// The purge form, with what is to be purged.
function purgePage(answers) {
  const page = open((what, options) => (what === '/purge' ? answers(JSON.parse(options.body)) : GONE));
  page.element('purge-kind').value = 'prefix';
  page.element('purge-value').value = 'http://a.example/x';
  page.element('purge-soft').checked = true;
  page.orders = () => page.asked.filter((each) => each.what === '/purge').map((each) => JSON.parse(each.body));
  return page;
}

test('a purge is counted first, and what goes is what was counted', async () => {
  const page = purgePage((order) => (order.dry_run ? {would_purge: 3, token: 'of the count'} : {purged: 3}));
  page.element('token').value = 'secret';
  page.element('purge').fire('submit');
  await page.settle();
  assert.equal(page.element('purge-go').disabled, false);
  assert.equal(page.element('purge-go').textContent, 'Make 3 stale');
  assert.equal(page.element('purged').textContent, '3 stored responses in memory.');
  // Set without an event: what was counted goes all the same.
  page.element('purge-value').value = 'http://b.example/';
  page.element('purge-go').fire('click');
  await page.settle();
  const order = {prefix: ['http://a.example/x'], soft: true};
  assert.deepEqual(page.orders(), [{...order, dry_run: true}, {...order, token: 'of the count'}]);
  assert.equal(page.element('purged').textContent, '3 made stale.');
  assert.equal(page.element('purge-go').disabled, true);
  const headers = page.asked.filter((each) => each.what === '/purge').map((each) => each.headers.Authorization);
  assert.deepEqual(headers, ['Bearer secret', 'Bearer secret']);
  // It goes once.
  page.element('purge-go').fire('click');
  await page.settle();
  assert.equal(page.orders().length, 2);
});

test('another input is counted anew, also while the count is on its way', async () => {
  const page = purgePage(() => ({would_purge: 1, token: 't'}));
  page.element('purge').fire('submit');
  page.element('purge-value').fire('input');
  await page.settle();
  assert.equal(page.element('purge-go').textContent, 'Purge');
  assert.equal(page.element('purge-go').disabled, true);
  page.element('purge-go').fire('click');
  await page.settle();
  assert.equal(page.orders().length, 1);
});

test('a refused purge shows why, as text', async () => {
  const page = purgePage(() => ({fault: '409 Conflict\n<img src=x onerror=alert(1)>\n'}));
  page.element('purge').fire('submit');
  await page.settle();
  assert.equal(page.element('purged').textContent, '409 Conflict\n<img src=x onerror=alert(1)>');
  assert.equal(page.element('purged').classes.has('bad'), true);
  assert.equal(page.element('purge-go').disabled, true);
});
