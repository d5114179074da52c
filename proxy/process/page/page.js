// The page: asks once a second, and writes down what has changed.

const model = new Model();
const charts = new Charts(model);
const $ = (id) => document.getElementById(id);
let range = 300;
let paused = false;
let opened = null;       // the outcome whose reasons are shown
let drawn = 0;           // when the charts were drawn last, by the server's clock
let failures = 0;

const ALL = [];          // names of all outcomes' columns, as the first answer has them
const HIT_COLUMNS = GROUPS.hit.map((name) => `requests:${name}`);
const CACHEABLE_COLUMNS = HIT_COLUMNS.concat(GROUPS.miss.map((name) => `requests:${name}`));

function put(id, text) {
  const element = $(id);
  if (element.textContent !== text) element.textContent = text;
}

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

// As many children as there are items, each made once and filled again and again.
function fill(parent, items, create, update) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  while (parent.children.length < items.length) parent.append(create());
  items.forEach((item, i) => update(parent.children[i], item));
}

function row(columns) {
  return () => {
    const tr = make('tr');
    columns.forEach((name, i) => {
      const cell = make(i === 0 ? 'th' : 'td', '', name);
      if (i === 0) cell.scope = 'row';
      tr.append(cell);
    });
    return tr;
  };
}

function cells(tr, texts) {
  texts.forEach((text, i) => {
    if (tr.children[i].textContent !== text) tr.children[i].textContent = text;
  });
}

function meter(id, part) {
  const share = Math.min(1, Math.max(0, part || 0));
  $(id).firstElementChild.style.width = `${(100 * share).toFixed(2)}%`;
  $(id).classList.toggle('near', share >= 0.9 && id === 'connections-meter');
}

// --- head

function showHead({process, stats}) {
  put('host', process.name);
  put('version', stats.version);
  put('uptime', uptime(stats.uptime_seconds));
  const state = $('state');
  put('state', process.state);
  state.className = `pill ${process.state}`;
  const reload = process.last_reload;
  put('reload', reload === null ? 'no reload yet'
    : `last reload ${clock(reload.when_ms)} ${reload.fault === '' ? 'accepted' : reload.fault}`);
  const replaced = stats.predecessors;
  put('predecessors', `${replaced} replaced ${replaced === 1 ? 'process has' : 'processes have'} clients`);
  $('predecessors').hidden = replaced === 0;
  fill($('warnings'), process.warnings, () => make('li'), (li, text) => {
    if (li.textContent !== text) li.textContent = text;
  });
  $('warnings').hidden = process.warnings.length === 0;
  const title = `${process.name} – encore`;
  if (document.title !== title) document.title = title;
}

// --- now

function showNow({stats}) {
  const {counters, latency} = stats;
  const requests = Object.values(stats.requests).reduce((sum, n) => sum + n, 0);
  put('rate', rate(model.recent(ALL, 10).rate));
  put('requests-all', number(requests));
  for (const [name, seconds] of [['1m', 60], ['1h', 3600]]) {
    put(`ohr-${name}`, percent(model.ratio(HIT_COLUMNS, CACHEABLE_COLUMNS, seconds)));
    put(`bhr-${name}`, percent(model.ratio(['body_bytes_hit'], ['body_bytes_all'], seconds)));
  }
  put('ohr-1m-again', $('ohr-1m').textContent);
  put('bhr-1m-again', $('bhr-1m').textContent);
  put('ohr-all', percent(stats.ratios.object_hit_ratio));
  put('bhr-all', percent(stats.ratios.byte_hit_ratio));
  put('saved', bytes(counters.body_bytes_hit));
  put('to-clients', `${bytes(model.recent(['bytes_to_clients'], 10).rate)}/s`);
  put('from-origins', `${bytes(model.recent(['bytes_from_origins'], 10).rate)}/s`);
  put('to-clients-all', bytes(counters.bytes_to_clients));
  put('from-origins-all', bytes(counters.bytes_from_origins));
  const connections = model.live.process.limits[0];
  put('connections', number(connections.current));
  put('connections-limit', number(connections.limit));
  put('http2-connections', number(counters.http2_open));
  put('http2-streams', number(counters.http2_streams_open));
  meter('connections-meter', connections.limit ? connections.current / connections.limit : 0);
  put('errors', rate(model.recent(['responses_5xx'], 60).rate));
  put('errors-all', number(counters.responses_5xx));
  for (const group of ['hit', 'miss']) {
    for (const q of ['p50', 'p99']) {
      put(`${group}-${q}`, time(model.latest(`${group}_${q}`)));
      put(`${group}-${q}-all`, latency[group].count === 0 ? '–' : time(latency[group][`${q}_seconds`]));
    }
  }
}

// --- outcomes

function outcomeRow() {
  const li = make('li');
  const button = make('button');
  button.type = 'button';
  button.append(make('span', '', 'dot'), make('span', '', 'name'), make('span', '', 'count'),
    make('span', '', 'share'));
  button.addEventListener('click', () => open(button.dataset.outcome === opened ? null : button.dataset.outcome));
  li.append(button);
  return li;
}

function showOutcomes({stats}) {
  const counted = Object.entries(stats.requests).filter(([, count]) => count > 0)
    .sort((a, b) => b[1] - a[1]);
  const sum = counted.reduce((all, [, count]) => all + count, 0);
  fill($('outcomes'), counted, outcomeRow, (li, [name, count]) => {
    const button = li.firstElementChild;
    const [dot, label, total, share] = button.children;
    button.dataset.outcome = name;
    button.setAttribute('aria-expanded', String(name === opened));
    button.setAttribute('aria-controls', 'opened');
    dot.style.backgroundColor = colourOf(name);
    if (label.textContent !== name) label.textContent = name;
    total.textContent = number(count);
    share.textContent = percent(count / sum);
  });
}

async function open(name) {
  opened = name;
  $('opened').hidden = name === null;
  if (model.live !== null) showOutcomes(model.live);
  if (name === null) return;
  await showOpened();
  if (opened === name) $('opened-title').focus();
}

async function showOpened() {
  const name = opened;
  let found;
  try {
    found = await ask(`/api/outcome?name=${encodeURIComponent(name)}`);
  } catch (error) {
    return;
  }
  if (opened !== name) return;
  put('opened-title', `${name}: ${number(found.requests)} requests`);
  put('opened-note', found.sampled
    ? 'Of plain hits one in 64 is looked at; the counts of reasons are estimates.'
    : 'Query strings are left out unless admin.show_queries is set.');
  fill($('reasons'), found.reasons, () => {
    const li = make('li');
    li.append(make('span'), make('b'));
    return li;
  }, (li, reason) => {
    li.firstElementChild.textContent = reason.reason;
    li.lastElementChild.textContent = number(reason.count);
  });
  const body = $('latest').tBodies[0];
  fill(body, found.latest, row(['', '', '', 'url', '']), (tr, request) => cells(tr, [
    clock(request.when_ms), request.method, request.status === 0 ? '–' : String(request.status),
    request.url, request.reason]));
}

// --- admission

function showAdmission({stats, process}) {
  const filter = stats.admission.filter;
  $('no-filter').hidden = filter !== undefined;
  $('filter').hidden = filter === undefined;
  const cache = stats.cache;
  put('reused', cache.commits === 0 ? '–' : `${percent(cache.reused / cache.commits)} of ${number(cache.commits)}`);
  put('kept-out', `${bytes(stats.counters.kept_out_bytes)} in ${number(stats.counters.kept_out)}`);
  if (filter === undefined) return;
  ['gen0', 'gen1'].forEach((id, i) => {
    const generation = filter.generations[i];
    const insertions = generation === undefined ? 0 : generation.insertions;
    put(id, `${number(insertions)} of ${number(filter.capacity)}, ${percent(generation === undefined ? 0 : generation.fill)} of the bits`);
    meter(`${id}-meter`, insertions / filter.capacity);
  });
  const pace = model.recent(['insertions'], 3600).rate;
  const current = filter.generations[0] === undefined ? 0 : filter.generations[0].insertions;
  const byCount = pace ? (filter.capacity - current) / pace : Infinity;
  const limit = process.rotate_after_seconds;
  const turn = pace ? filter.capacity / pace : Infinity;
  const cycle = limit > 0 ? Math.min(turn, limit) : turn;
  const next = limit > 0 ? Math.min(byCount, limit) : byCount;
  put('rotation', Number.isFinite(next) ? `in ${limit > 0 && limit < byCount ? 'at most' : 'about'} ${span(next)}` : 'not at the present rate');
  put('window', Number.isFinite(cycle) ? `${span(cycle)} to ${span(2 * cycle)}` : 'without end at the present rate');
  put('rotations', number(filter.rotations));
  put('fpr-theory', small(filter.fpr_theory));
  put('fpr-bits', small(filter.fpr_bits));
  put('fpr-measured', filter.probes === 0 ? 'nothing asked yet'
    : `${small(filter.fpr_measured)} (${small(filter.fpr_measured_low)} to ${small(filter.fpr_measured_high)}), ${number(filter.false_positives)} of ${number(filter.probes)}, ${number(Math.round(filter.false_positives_expected))} expected`);
  showScale(filter);
}

const SVG = 'http://www.w3.org/2000/svg';
function shape(parent, name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
}

let scaleShown = '';
function showScale(filter) {
  const {fpr_theory: theory, fpr_bits: bits, fpr_measured: measured, probes} = filter;
  const low = filter.fpr_measured_low, high = filter.fpr_measured_high;
  const values = [theory, bits, measured, low, high, probes].map((v) => v.toPrecision(4)).join(' ');
  if (values === scaleShown) return;
  scaleShown = values;
  // What is known well decides; an interval of a few probes may reach beyond the end.
  const top = Math.max(theory, bits, measured, probes > 200 ? high : 0, 1e-9) * 1.25;
  const x = (value) => 16 + 568 * Math.min(1, value / top);
  const svg = $('scale');
  svg.replaceChildren();
  shape(svg, 'line', {x1: 16, x2: 584, y1: 36, y2: 36, class: 'axis'});
  for (let i = 0; i <= 4; i++) {
    shape(svg, 'line', {x1: x(top * i / 4), x2: x(top * i / 4), y1: 31, y2: 41, class: 'axis'});
    shape(svg, 'text', {x: x(top * i / 4), y: 62, 'text-anchor': i === 0 ? 'start' : i === 4 ? 'end' : 'middle'}, small(top * i / 4));
  }
  if (probes > 0) {
    shape(svg, 'line', {x1: x(low), x2: Math.max(x(high), x(low) + 2), y1: 36, y2: 36, class: 'interval'});
    shape(svg, 'circle', {cx: x(measured), cy: 36, r: 5, class: 'measured'});
  }
  shape(svg, 'line', {x1: x(theory), x2: x(theory), y1: 14, y2: 36, class: 'mark theory'});
  shape(svg, 'line', {x1: x(bits), x2: x(bits), y1: 36, y2: 50, class: 'mark bits'});
  svg.setAttribute('aria-label', `False-positive rate: ${small(theory)} by theory, ${small(bits)} by the bits, `
    + (probes === 0 ? 'not measured yet' : `${small(measured)} measured, between ${small(low)} and ${small(high)}`));
}

// --- cache, origins, limits

function hosts(id, list, text) {
  const most = list.length === 0 ? 1 : list[0].weight;
  fill($(id), list.length === 0 ? [null] : list, () => {
    const li = make('li');
    li.append(make('i'), make('span'), make('b'));
    return li;
  }, (li, item) => {
    li.children[0].style.width = item === null ? '0' : `${(100 * item.weight / most).toFixed(1)}%`;
    li.children[1].textContent = item === null ? 'none yet' : item.host;
    li.children[2].textContent = item === null ? '' : text(item);
  });
}

function showCache({stats, process}) {
  put('overtaken', number(stats.counters.overtaken));
  put('purges-refused', number(stats.counters.purges_refused));
  const cache = stats.cache;
  put('cache-used', bytes(cache.used_bytes));
  put('cache-limit', bytes(cache.capacity_bytes));
  meter('cache-meter', cache.used_bytes / cache.capacity_bytes);
  put('objects', number(cache.objects));
  put('evictions', rate(model.recent(['evictions'], 60).rate));
  const ages = process.evicted_ages, sizes = process.stored_sizes;
  put('eviction-age', ages.count === 0 ? 'none evicted yet' : `under ${span(ages.p50)} / ${span(ages.p90)}`);
  put('sizes', sizes.count === 0 ? 'none stored yet' : `under ${bytes(sizes.p50)} / ${bytes(sizes.p90)}`);
  const error = process.hosts_by_bytes.reduce((most, item) => Math.max(most, item.error), 0);
  put('hosts-note', `A sketch of 64 names a worker (Space-Saving), hits sampled one in ${process.hit_sample}: `
    + (error === 0 ? 'no name was displaced.' : `the bytes of a name may be up to ${bytes(error)} too high.`));
  hosts('hosts-bytes', process.hosts_by_bytes, (item) => bytes(item.weight));
  hosts('hosts-hits', process.hosts_by_hits, (item) => number(item.weight));
}

function showOrigins({stats}) {
  const servers = stats.servers || [];
  $('no-origins').hidden = servers.length !== 0;
  $('origins-scroll').hidden = servers.length === 0;
  const columns = ['', '', '', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', ''];
  fill($('origins').tBodies[0], servers, row(columns), (tr, s) => {
    const mean = (total, count) => count === 0 ? '–' : time(total / count / 1e6);
    cells(tr, [s.origin, s.server, s.standing, number(s.requests), number(s.sent),
      bytes(s.received_bytes), number(s.connects), mean(s.connect_microseconds, s.connects),
      mean(s.answer_microseconds, s.answers), number(s.errors_4xx), number(s.errors_5xx),
      number(s.retries), s.last_failure === null ? '–' : `${clock(s.last_failure_ms)} ${s.last_failure}`]);
    tr.children[2].className = s.standing;
  });
}

function showFleet({stats}) {
  const fleet = stats.fleet;
  $('fleet-section').hidden = fleet === null;
  if (fleet === null) return;
  const {engine, purges} = fleet;
  const fault = engine.fault === '' ? '' : ` (${engine.fault})`;
  put('fleet-note', `${engine.late ? `Purges are late: ${span(engine.lag_seconds)}${fault}.` : 'Purges are not late.'} `
    + `${number(purges.published)} published, ${number(purges.applied)} applied, ${number(purges.pending)} waiting, ${number(purges.gaps)} gaps.`
    + fleet.warnings.map((warning) => ` Warning: ${warning}.`).join(''));
  fill($('fleet').tBodies[0], fleet.nodes, row(['', '', '', '', 'n', 'n', 'n', 'n']), (tr, node) => {
    const part = (value) => value === null ? '–' : percent(value);
    cells(tr, [node.node, node.here ? 'here' : node.present ? 'present' : 'gone', node.version, node.config,
      part(node.hit_ratio), span(node.lag_seconds), part(node.filter_fill), `${span(node.seen_seconds)} ago`]);
  });
}

function interceptRow() {
  const tr = row(['', '', 'n', 'n', ''])();
  const button = make('button', 'Decrypt again');
  button.type = 'button';
  tr.lastElementChild.append(button);
  return tr;
}

function showIntercept({stats}) {
  const intercept = stats.intercept;
  $('intercept-section').hidden = intercept === undefined;
  if (intercept === undefined) return;
  const refused = intercept.rejected_newest;
  put('intercept-note', refused.length === 0 ? 'No client has refused the certificate.'
    : `${number(intercept.rejected_pairs)} pairs of a client and a host pass unread, because the client refused the certificate.`);
  $('intercept-scroll').hidden = refused.length === 0;
  $('intercept-clear').disabled = refused.length === 0;
  fill($('intercept').tBodies[0], refused, interceptRow, (tr, each) => {
    cells(tr, [each.client, each.host, number(each.refusals),
      each.seconds_left === 0 ? '–' : span(each.seconds_left)]);
    const button = tr.lastElementChild.firstElementChild;
    button.dataset.client = each.client;
    button.dataset.host = each.host;
    button.setAttribute('aria-label', `Decrypt ${each.host} again for ${each.client}`);
  });
}

function showLimits({process}) {
  fill($('limits').tBodies[0], process.limits, row(['', 'n', 'n', 'n', 'n']), (tr, limit) => {
    const text = limit.unit === 'bytes' ? bytes : number;
    cells(tr, [limit.name, text(limit.current), text(limit.peak),
      limit.limit === null ? 'none' : text(limit.limit), number(limit.refused)]);
  });
}

// Estimates move slowly: they are asked for seldom, and no more where nothing is simulated.
const SHADOWS_EVERY = 5;
let polls = 0;

async function showShadows() {
  if (polls++ % SHADOWS_EVERY !== 0) return;
  const shadows = await ask('/api/shadow');
  $('shadows-section').hidden = shadows.policies.length === 0;
  if (shadows.policies.length === 0) return;
  put('shadows-note', `The same requests, simulated on one key in ${number(shadows.sample)}; bounds of 95 %.`
    + (shadows.dropped_requests > 0 ? ` ${number(shadows.dropped_requests)} requests were not simulated: the processor is busy.` : ''));
  const n = 'n';
  fill($('shadows').tBodies[0], shadows.policies, row(['', n, n, n, n, n, n, n, n, n]), (tr, policy) => {
    const share = (of) => [percent(of.value), `${percent(of.low)} to ${percent(of.high)}`];
    cells(tr, [policy.policy,
      ...share(policy.object_hit_ratio), percent(policy.in_force.object_hit_ratio),
      ...share(policy.byte_hit_ratio), percent(policy.in_force.byte_hit_ratio),
      bytes(policy.estimated.bytes_written), bytes(policy.in_force.bytes_written),
      number(policy.sampled.requests)]);
  });
}

// --- charts

// Seldom where a point is worth many seconds: it would look the same.
function due(now) {
  const beat = range <= 300 ? 1000 : range <= 3600 ? 5000 : 30000;
  return now - drawn >= beat - 100 || now < drawn;
}

function drawCharts(force) {
  const now = model.now();
  if (document.hidden || !(force || due(now))) return;
  drawn = now;
  const of = (names, how) => model.points(names, range, how);
  charts.draw('chart-rate', [{label: 'requests', points: of(ALL, rateOf), colour: variable('--accent'),
    fill: variable('--accent-soft')}], range, rate, {bare: true});
  const {rows, from} = model.span(range);
  const present = ALL.filter((name) => rows.sum([name], from) > 0);
  charts.draw('chart-outcomes', present.map((name, i) => {
    const outcome = name.slice('requests:'.length);
    return {label: outcome, points: of([name], rateOf), colour: colourOf(outcome), fill: colourOf(outcome),
      stack: i === 0 ? 'origin' : '-1'};
  }), range, (value) => `${rate(value)}/s`, {stacked: true});
  $('chart-outcomes').setAttribute('aria-label', 'Requests a second by outcome; in the time shown '
    + (present.length === 0 ? 'there were none' : present.map((name) => `${name.slice(9)} ${number(rows.sum([name], from))}`).join(', ')));
  charts.draw('chart-bytes', [
    {label: 'to clients', points: of(['bytes_to_clients'], rateOf), colour: variable('--clients')},
    {label: 'from origins', points: of(['bytes_from_origins'], rateOf), colour: variable('--origins')},
  ], range, (value) => `${bytes(value)}/s`, {binary: true});
  charts.draw('chart-latency', [
    {label: 'hits', points: of(['hit_p99'], largestOf), colour: variable('--hit')},
    {label: 'misses', points: of(['miss_p99'], largestOf), colour: variable('--miss')},
  ], range, time, {tens: true});
  charts.draw('chart-fpr', [
    {label: 'by theory', points: of(['fpr_theory'], largestOf), colour: variable('--theory')},
    {label: 'by the bits', points: of(['fpr_bits'], largestOf), colour: variable('--bits'), dash: [5, 3]},
    {label: 'measured', points: of(['fpr_measured'], largestOf), colour: variable('--measured')},
    {label: '95 % from', points: of(['fpr_measured_low'], largestOf), colour: variable('--measured'), dash: [1, 3]},
    {label: '95 % to', points: of(['fpr_measured_high'], largestOf), colour: variable('--measured'), dash: [1, 3]},
  ], range, small);
  const sizes = model.live.process.stored_sizes.buckets;
  const first = Math.max(0, sizes.findIndex((count) => count > 0));
  charts.bars('chart-sizes', sizes.slice(first).map((_, i) => `< ${bytes(2 ** (first + i))}`),
    sizes.slice(first), variable('--accent'), number);
}

// --- asking

async function ask(path, options = {}) {
  const response = await fetch(path, {cache: 'no-store', credentials: 'omit', ...options});
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

function show(restarted) {
  const live = model.live;
  if (ALL.length === 0) for (const name of Object.keys(live.stats.requests)) ALL.push(`requests:${name}`);
  showHead(live);
  showNow(live);
  showOutcomes(live);
  showAdmission(live);
  showCache(live);
  showOrigins(live);
  showFleet(live);
  showIntercept(live);
  showLimits(live);
  $('token-row').hidden = !live.process.token_needed;
  drawCharts(restarted);
}

// One question at a time: two of the same moment would bring the same rows.
let polling = null;
function poll() {
  if (polling === null) polling = pollOnce().finally(() => { polling = null; });
  return polling;
}

async function pollOnce() {
  const first = model.live === null;
  try {
    const restarted = model.take(await ask(`/api/live?since=${model.since}`));
    failures = 0;
    $('trouble').hidden = true;
    show(first || restarted);
    await showShadows();
  } catch (error) {
    // One that went wrong may be a reload of the network; two are not.
    if (++failures < 2) return;
    $('trouble').hidden = false;
    put('trouble', `No response for ${failures} s: the numbers below are old.`);
    put('state', 'gone');
    $('state').className = 'pill gone';
    return;
  }
  if (opened !== null) await showOpened();
}

// One after the other, however slow they are, and none while nobody looks.
async function keepCurrent() {
  for (;;) {
    const began = performance.now();
    if (!paused && !document.hidden) await poll();
    const rest = Math.max(100, 1000 - (performance.now() - began));
    await new Promise((resolve) => { setTimeout(resolve, rest); });
  }
}

// --- what people do

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  put('theme', theme === 'dark' ? 'Light' : 'Dark');
  charts.restyle();
  scaleShown = '';
  if (model.live !== null) {
    showOutcomes(model.live);
    drawCharts(true);
  }
}

function remembered() {
  try {
    return localStorage.getItem('theme');
  } catch (error) {
    return null;
  }
}

const wantsDark = matchMedia('(prefers-color-scheme: dark)');
wantsDark.addEventListener('change', () => { if (remembered() === null) setTheme(wantsDark.matches ? 'dark' : 'light'); });
$('theme').addEventListener('click', () => {
  const theme = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem('theme', theme);
  } catch (error) { /* it is chosen for this visit alone */ }
  setTheme(theme);
});
$('pause').addEventListener('click', () => {
  paused = !paused;
  $('pause').setAttribute('aria-pressed', String(paused));
  put('pause', paused ? 'Go on' : 'Pause');
});
for (const input of document.querySelectorAll('input[name="range"]')) {
  input.addEventListener('change', () => {
    range = Number(input.value);
    if (model.live !== null) drawCharts(true);
  });
}
$('close').addEventListener('click', () => {
  const button = document.querySelector(`[data-outcome="${opened}"]`);
  open(null);
  if (button !== null) button.focus();
});
document.addEventListener('visibilitychange', () => { if (!document.hidden && !paused) poll(); });

async function clearRefused(which) {
  const headers = $('token').value === '' ? {} : {Authorization: `Bearer ${$('token').value}`};
  const out = $('intercept-cleared');
  try {
    const answer = await ask(`/intercept/clear?${new URLSearchParams(which)}`, {method: 'POST', headers});
    put('intercept-cleared', `${number(answer.cleared)} decrypted again.`);
    out.classList.remove('bad');
  } catch (error) {
    put('intercept-cleared', error.message);
    out.classList.add('bad');
  }
}
$('intercept-clear').addEventListener('click', () => clearRefused({}));
$('intercept').addEventListener('click', (event) => {
  const {client, host} = event.target.dataset;
  if (client !== undefined) clearRefused({client, host});
});

// The purge has what was counted: the form is read once, before the count, and the count's token
// stands for it. Another input is counted anew.
let counted = null;
let asking = 0;  // the count that is shown is that of the latest question
function purgeOrder() {
  return {[$('purge-kind').value]: [$('purge-value').value], soft: $('purge-soft').checked};
}
async function sendPurge(order) {
  const headers = {'Content-Type': 'application/json'};
  if ($('token').value !== '') headers.Authorization = `Bearer ${$('token').value}`;
  return ask('/purge', {method: 'POST', headers, body: JSON.stringify(order)});
}
function purged(text, bad) {
  put('purged', text);
  $('purged').classList.toggle('bad', bad === true);
}
function forgetCount() {
  counted = null;
  ++asking;
  $('purge-go').disabled = true;
  put('purge-go', 'Purge');
}
for (const id of ['purge-kind', 'purge-value', 'purge-soft']) $(id).addEventListener('input', () => { forgetCount(); purged(''); });
$('purge').addEventListener('submit', async (event) => {
  event.preventDefault();
  forgetCount();
  const mine = asking;
  const order = purgeOrder();
  try {
    const answer = await sendPurge({...order, dry_run: true});
    if (mine !== asking) return;
    counted = {...order, token: answer.token};
    $('purge-go').disabled = false;
    put('purge-go', counted.soft ? `Make ${number(answer.would_purge)} stale` : `Purge ${number(answer.would_purge)}`);
    purged(`${number(answer.would_purge)} stored response${answer.would_purge === 1 ? '' : 's'} in memory`
      + (answer.disk === undefined ? '.' : '; what is on disk alone is not counted.'));
  } catch (error) {
    if (mine === asking) purged(error.message, true);
  }
});
$('purge-go').addEventListener('click', async () => {
  const order = counted;
  forgetCount();
  if (order === null) return;
  try {
    const answer = await sendPurge(order);
    purged(`${number(answer.purged)} ${order.soft ? 'made stale' : 'purged'}.`);
  } catch (error) {
    purged(error.message, true);
  }
});
$('explain').addEventListener('submit', async (event) => {
  event.preventDefault();
  const out = $('explained');
  out.hidden = false;
  try {
    const query = new URLSearchParams({url: $('explain-url').value.trim(), format: 'text'});
    const response = await fetch(`/api/explain?${query}`, {cache: 'no-store', credentials: 'omit'});
    out.textContent = (await response.text()).trim();
  } catch (error) {
    out.textContent = error.message;
  }
});

setTheme(remembered() || (wantsDark.matches ? 'dark' : 'light'));
keepCurrent();
