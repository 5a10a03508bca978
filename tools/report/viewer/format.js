// Formats numbers as text.

export const DASH = "–";

/** Formats a fraction in per cent; a dash if it is null, undefined, NaN or negative. */
export function percent(share, digits = 1) {
  return share === null || share === undefined || !(share >= 0) ? DASH :
                                                                  (100 * share).toFixed(digits);
}

function signed(value, digits) { return (value < 0 ? "" : "+") + value.toFixed(digits); }

/** Formats a difference of fractions in per cent, with its sign. */
export function change(share, digits = 2) {
  return Number.isFinite(share) ? signed(100 * share, digits) : DASH;
}

export function interval({low, high} = {}) {
  return Number.isFinite(low) ? `${change(low)} .. ${change(high)}` : DASH;
}

/** Formats a number with up to `digits` significant digits. */
export function number(value, digits = 4) {
  if (value === null || !Number.isFinite(value)) return "not finite";
  return String(Number(value.toPrecision(digits)));
}

export function counted(count, noun, plural = `${noun}s`) {
  return `${count} ${count === 1 ? noun : plural}`;
}

/** Formats a duration as "12.0 s", "3:05" or "2:03:05". */
export function duration(seconds) {
  if (!(seconds > 0)) return "";
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds), two = (part) => String(part).padStart(2, "0");
  const minutes = Math.floor(whole / 60) % 60, hours = Math.floor(whole / 3600);
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}
