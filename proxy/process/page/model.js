'use strict';
// What the page knows: the rows of the history, never more than the server keeps, and sums of them.

const SECONDS_MAX = 3600;
const MINUTES_MAX = 1440;
const POINTS_MAX = 300;

const GROUPS = {
  hit: ['hit', 'stale', 'revalidated'],
  miss: ['first-request', 'second-request', 'admitted', 'collapsed', 'not-admitted', 'too-large',
    'uncacheable'],
};

// Rows, the oldest first; of each column an array as long as `ends`.
class Rows {
  constructor(max) {
    this.max = max;
    this.clear();
  }

  clear() {
    this.ends = [];
    this.spans = [];
    this.columns = new Map();
  }

  static behind(rows, count) {
    const values = {};
    for (const [name, column] of Object.entries(rows.values)) values[name] = column.slice(count);
    return {end: rows.end.slice(count), span: rows.span.slice(count), values};
  }

  get last() { return this.ends.length === 0 ? 0 : this.ends[this.ends.length - 1]; }

  // Rows that it has already are passed over, whoever asked for them.
  add(rows) {
    const known = rows.end.filter((end) => end <= this.last).length;
    if (known !== 0) rows = Rows.behind(rows, known);
    const added = rows.end.length;
    if (added === 0) return;
    const before = this.ends.length;
    for (const end of rows.end) this.ends.push(end);
    for (const span of rows.span) this.spans.push(span);
    for (const name of Object.keys(rows.values)) {
      if (!this.columns.has(name)) this.columns.set(name, new Array(before).fill(0));
    }
    for (const [name, column] of this.columns) {
      const values = rows.values[name];
      for (let i = 0; i < added; i++) column.push(values === undefined ? 0 : values[i]);
    }
    const extra = this.ends.length - this.max;
    if (extra <= 0) return;
    this.ends.splice(0, extra);
    this.spans.splice(0, extra);
    for (const column of this.columns.values()) column.splice(0, extra);
  }

  // The first row that began at `ms` or later.
  from(ms) {
    let low = 0, high = this.ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] - this.spans[middle] < ms) low = middle + 1; else high = middle;
    }
    return low;
  }

  sum(names, from, to = this.ends.length) {
    let sum = 0;
    for (const name of names) {
      const column = this.columns.get(name);
      if (column !== undefined) for (let i = from; i < to; i++) sum += column[i] || 0;
    }
    return sum;
  }

  seconds(from, to = this.ends.length) {
    let sum = 0;
    for (let i = from; i < to; i++) sum += this.spans[i];
    return sum / 1000;
  }
}

class Model {
  constructor() {
    this.seconds = new Rows(SECONDS_MAX);
    this.minutes = new Rows(MINUTES_MAX);
    this.live = null;
  }

  get since() { return this.seconds.last; }

  take(live) {
    // A clock that went back is another process.
    const restarted = this.live !== null &&
      live.stats.uptime_seconds + 1 < this.live.stats.uptime_seconds;
    if (restarted) {
      this.seconds.clear();
      this.minutes.clear();
    }
    this.seconds.add(live.history.seconds);
    this.minutes.add(live.history.minutes);
    delete live.history;
    this.live = live;
    return restarted;
  }

  now() { return this.live.process.now_ms; }

  // Over the last `span` seconds, which are at most an hour.
  recent(names, span) {
    const from = this.seconds.from(this.now() - span * 1000);
    const seconds = this.seconds.seconds(from);
    const sum = this.seconds.sum(names, from);
    return {sum, seconds, rate: seconds === 0 ? null : sum / seconds};
  }

  ratio(parts, wholes, span) {
    const from = this.seconds.from(this.now() - span * 1000);
    const whole = this.seconds.sum(wholes, from);
    return whole === 0 ? null : this.seconds.sum(parts, from) / whole;
  }

  // The latest value of a quantile that was one, of the last minute.
  latest(name) {
    const column = this.seconds.columns.get(name);
    if (column === undefined) return null;
    for (let i = column.length - 1; i >= Math.max(0, column.length - 60); i--) {
      if (column[i] !== null && column[i] !== 0) return column[i];
    }
    return null;
  }

  // The rows that a chart of so many seconds is drawn from, and how many of them make a point.
  span(range) {
    const rows = range > SECONDS_MAX ? this.minutes : this.seconds;
    const from = rows.from(this.now() - range * 1000);
    const step = Math.max(1, Math.ceil((range / (rows === this.minutes ? 60 : 1)) / POINTS_MAX));
    return {rows, from, step};
  }

  // Points of a series over the range: rates of sums, or the largest of what is measured.
  points(names, range, how) {
    const {rows, from, step} = this.span(range);
    const points = [];
    // Where a point begins depends on the time alone, so that it stays what it is.
    const beat = step * (rows === this.minutes ? 60000 : 1000);
    let at = from;
    while (at < rows.ends.length) {
      const mark = Math.floor(rows.ends[at] / beat);
      let to = at + 1;
      while (to < rows.ends.length && Math.floor(rows.ends[to] / beat) === mark) to++;
      points.push({x: rows.ends[to - 1], y: how(rows, names, at, to)});
      at = to;
    }
    return points;
  }
}

function rateOf(rows, names, from, to) {
  const seconds = rows.seconds(from, to);
  return seconds === 0 ? 0 : rows.sum(names, from, to) / seconds;
}

function largestOf(rows, names, from, to) {
  const column = rows.columns.get(names[0]);
  let largest = null;
  if (column === undefined) return null;
  for (let i = from; i < to; i++) {
    if (column[i] !== null && (largest === null || column[i] > largest)) largest = column[i];
  }
  return largest;
}

// --- texts

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});

// Three digits that count, never an exponent.
const threeDigits = new Intl.NumberFormat('en', {minimumSignificantDigits: 3, maximumSignificantDigits: 3});

function number(value) { return value === null ? '–' : whole.format(value); }

function rate(value) {
  if (value === null) return '–';
  if (value === 0 || value >= 100) return whole.format(value);
  if (value < 0.0001) return '<0.0001';
  return value < 0.01 ? value.toFixed(4) : value < 1 ? value.toFixed(2) : threeDigits.format(value);
}

function percent(value) {
  if (value === null) return '–';
  return `${(100 * value).toFixed(1)} %`;
}

function small(value) {
  if (value === null) return '–';
  if (value === 0) return '0';
  return value >= 1e-6 ? `${threeDigits.format(100 * value)} %` : `1 in ${number(1 / value)}`;
}

function bytes(value) {
  if (value === null) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? Math.round(value) : value < 10 ? value.toFixed(2) : value.toFixed(value < 100 ? 1 : 0)} ${units[unit]}`;
}

function time(seconds) {
  if (seconds === null) return '–';
  if (seconds < 0.001) return `${threeDigits.format(seconds * 1e6)} µs`;
  if (seconds < 1) return `${threeDigits.format(seconds * 1e3)} ms`;
  return seconds < 120 ? `${threeDigits.format(seconds)} s` : span(seconds);
}

function span(seconds) {
  if (seconds === null || !Number.isFinite(seconds)) return '–';
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${(seconds / 3600).toFixed(1)} h`;
  const days = seconds / 86400;
  return days < 100 ? `${days.toFixed(1)} days` : `${number(days)} days`;
}

function uptime(seconds) {
  const s = Math.floor(seconds);
  const two = (n) => String(n).padStart(2, '0');
  const day = Math.floor(s / 86400);
  const clock = `${two(Math.floor(s / 3600) % 24)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  return day > 0 ? `${day} d ${clock}` : clock;
}

function clock(ms, seconds = true) {
  const d = new Date(ms);
  const two = (n) => String(n).padStart(2, '0');
  return `${two(d.getHours())}:${two(d.getMinutes())}${seconds ? `:${two(d.getSeconds())}` : ''}`;
}
