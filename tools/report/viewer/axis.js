// Axis ranges and positions of grid lines.

/** Returns the lowest 1, 2 or 5 times a power of ten that is at least `value` (positive). */
export function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((digit) => digit * power >= value * (1 - 1e-9));
}

/** Returns a linear axis that contains a range, which may be empty, with ticks at round values. */
export function linearAxis(low, high, lines = 5) {
  if (!(low < high)) high = low + (low === 0 ? 1 : Math.abs(low));
  const step = roundUp((high - low) / lines);
  const first = Math.floor(low / step + 1e-9),
        last = Math.max(Math.ceil(high / step - 1e-9), first + 1);
  return scale(
      first * step, last * step,
      Array.from({length: last - first + 1}, (_, i) => (first + i) * step));
}

/** Returns a linear axis from `low` to `high`, with ticks at round values. */
export function exactAxis(low, high, lines = 5) {
  const whole = linearAxis(low, high, lines);
  return scale(low, high, whole.ticks.filter((tick) => tick >= low - 1e-9 && tick <= high + 1e-9));
}

/** Returns a logarithmic axis with ticks at powers of ten, for short ranges also 2 and 5 times. */
export function logAxis(low, high) {
  high = Math.max(high * 1.05, low * 2);
  const digits = Math.log10(high / low) > 3 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power)
    for (const digit of digits) ticks.push(digit * 10 ** power);
  const inside = ticks.filter((tick) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
  return {
    low,
    high,
    ticks: inside,
    at: (value) => Math.log(value / low) / Math.log(high / low),
    value: (share) => low * (high / low) ** share,
    shows: (value) => value > 0,
  };
}

function scale(low, high, ticks) {
  return {
    low,
    high,
    ticks,
    at: (value) => (value - low) / (high - low),
    value: (share) => low + share * (high - low),
    shows: () => true,
  };
}

/** Formats a tick, without rounding errors. */
export function tickText(value) {
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3))
    return String(Number(value.toPrecision(3)).toExponential());
  return String(Number(value.toPrecision(6)));
}
