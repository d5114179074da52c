// The charts, by Chart.js. Drawn when something has changed and the page can be seen.

const COLOURS = {
  'hit': ['#0f9d8a', '#2fb7a6'], 'stale': ['#67b99a', '#6fcfae'], 'revalidated': ['#a3cf9f', '#a5d8a0'],
  'first-request': ['#e0902f', '#eda24a'], 'second-request': ['#2f6fd6', '#5c93f2'],
  'admitted': ['#5b9bf0', '#83b4fb'], 'collapsed': ['#93bdf5', '#a9cbff'],
  'not-admitted': ['#eab676', '#f2c88f'], 'too-large': ['#b98d5b', '#cfa777'],
  'uncacheable': ['#8c6fd1', '#a98ff0'], 'bypass': ['#7b8794', '#8c9aa8'],
  'method': ['#9aa5b1', '#a9b5c0'], 'tunnel': ['#5d6b7a', '#74869a'],
  'upgrade': ['#aab4be', '#bcc6d0'], 'published': ['#c3ccd4', '#d0d8df'],
  'rule': ['#8e9db0', '#9db0c6'], 'purge': ['#b3a7c2', '#c5b9d4'],
};
const ERROR_COLOURS = [['#c8323c', '#f0626b'], ['#dd6a58', '#f5877a'], ['#a83258', '#e0648c'],
  ['#e58a7b', '#f7a99c'], ['#8f2a3a', '#cf5468']];

let errorsSeen = [];
function colourOf(outcome) {
  const dark = document.documentElement.dataset.theme === 'dark' ? 1 : 0;
  if (COLOURS[outcome] !== undefined) return COLOURS[outcome][dark];
  if (!errorsSeen.includes(outcome)) errorsSeen.push(outcome);
  return ERROR_COLOURS[errorsSeen.indexOf(outcome) % ERROR_COLOURS.length][dark];
}

function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Bytes are counted in powers of two: so are the lines behind them.
function binaryStep(series) {
  let most = 1;
  for (const one of series) for (const point of one.points) most = Math.max(most, point.y);
  return 2 ** Math.ceil(Math.log2(most / 5));
}

class Charts {
  constructor(model) {
    this.model = model;
    this.charts = new Map();
    this.usable = typeof Chart !== 'undefined';
    if (!this.usable) return;
    Chart.defaults.animation = false;
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    Chart.defaults.font.size = 11;
    Chart.defaults.elements.point.radius = 0;
    Chart.defaults.elements.line.borderWidth = 1.6;
    Chart.defaults.plugins.legend.display = false;
    Chart.defaults.maintainAspectRatio = false;
  }

  // Of the theme that is chosen: all are made anew.
  restyle() {
    for (const chart of this.charts.values()) chart.destroy();
    this.charts.clear();
    if (!this.usable) return;
    Chart.defaults.color = variable('--soft');
    Chart.defaults.borderColor = variable('--line');
  }

  options(format, more = {}) {
    return {
      parsing: false, normalized: true, spanGaps: true,
      interaction: {mode: 'index', intersect: false},
      scales: {
        x: {type: 'linear', grid: {display: false}, min: more.min, max: more.max,
          ticks: {maxTicksLimit: 6, maxRotation: 0,
            callback: (value) => clock(value, !more.coarse)}},
        y: more.tens ? {
          type: 'logarithmic',
          ticks: {callback: (value) => Math.abs(Math.log10(value) % 1) < 1e-6 ? format(value) : null},
          grid: {color: (line) => line.tick && line.tick.label ? variable('--line') : 'transparent'},
        } : {
          beginAtZero: true, stacked: more.stacked === true,
          ticks: {maxTicksLimit: more.binary ? 8 : 5, callback: (value) => format(value)},
        },
      },
      plugins: {tooltip: {
        filter: (item) => item.parsed.y !== null && (more.stacked !== true || item.parsed.y > 0),
        callbacks: {
          title: (items) => items.length === 0 ? '' : clock(items[0].parsed.x),
          label: (item) => ` ${item.dataset.label}: ${format(item.parsed.y)}`,
        }}},
    };
  }

  // Draws series over the range: [{label, points, colour, fill, dash}].
  draw(id, series, range, format, more = {}) {
    if (!this.usable) return;
    const max = this.model.now();
    const bounds = {min: max - range * 1000, max, coarse: range > 3600, ...more};
    const datasets = series.map((one) => ({
      label: one.label, data: one.points, borderColor: one.colour,
      backgroundColor: one.fill === undefined ? one.colour : one.fill,
      fill: one.fill === undefined ? false : (one.stack || 'origin'), borderDash: one.dash,
      borderWidth: more.stacked ? 0.5 : undefined,
    }));
    const known = this.charts.get(id);
    if (known === undefined) {
      const options = this.options(format, bounds);
      if (more.bare) {
        options.scales.x.display = false;
        options.scales.y.display = false;
        options.plugins.tooltip.enabled = false;
        options.layout = {padding: 0};
      }
      if (more.binary) options.scales.y.ticks.stepSize = binaryStep(series);
      this.charts.set(id, new Chart(document.getElementById(id), {type: 'line', data: {datasets}, options}));
      return;
    }
    // What stays keeps its place, so that nothing is made anew each second.
    const labels = known.data.datasets.map((dataset) => dataset.label).join('\n');
    if (labels === datasets.map((dataset) => dataset.label).join('\n')) {
      datasets.forEach((dataset, i) => { known.data.datasets[i].data = dataset.data; });
    } else {
      known.data.datasets = datasets;
    }
    if (more.binary) known.options.scales.y.ticks.stepSize = binaryStep(series);
    known.options.scales.x.min = bounds.min;
    known.options.scales.x.max = bounds.max;
    known.options.scales.x.ticks.callback = (value) => clock(value, !bounds.coarse);
    known.update('none');
  }

  bars(id, labels, values, colour, format) {
    if (!this.usable) return;
    const known = this.charts.get(id);
    if (known !== undefined) {
      known.data.labels = labels;
      known.data.datasets[0].data = values;
      known.update('none');
      return;
    }
    this.charts.set(id, new Chart(document.getElementById(id), {
      type: 'bar',
      data: {labels, datasets: [{data: values, backgroundColor: colour, borderRadius: 3, categoryPercentage: .94, barPercentage: .94}]},
      options: {
        scales: {
          x: {grid: {display: false}, ticks: {maxRotation: 0, autoSkip: true, maxTicksLimit: 8}},
          y: {beginAtZero: true, ticks: {maxTicksLimit: 5, precision: 0, callback: (v) => format(v)}},
        },
        plugins: {tooltip: {callbacks: {label: (item) => ` ${format(item.parsed.y)} stored`}}},
      },
    }));
  }
}
