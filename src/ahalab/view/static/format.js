// How numbers and durations are written. Unknown is a dash, never 0.

export const UNKNOWN = "–";
const known = (value) => value !== null && value !== undefined;
const minus = (text) => text.replace("-", "−");

/** A number with three significant digits. */
export function number(value) {
  if (!known(value)) return UNKNOWN;
  if (value === 0) return "0";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return minus(value.toLocaleString("en"));
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e6) return minus(value.toExponential(1));
  const digits = Math.max(0, 2 - Math.floor(Math.log10(size)));
  return minus(value.toLocaleString("en", { minimumFractionDigits: Math.min(digits, 3), maximumFractionDigits: digits }));
}

/** A number with two decimals and its sign: an advantage. */
export function signed(value) {
  if (!known(value)) return UNKNOWN;
  const rounded = Math.round(value * 100) / 100;
  if (rounded === 0) return "0.00";
  return (rounded > 0 ? "+" : "−") + Math.abs(rounded).toFixed(2);
}

/** A weight or a value, as short as it is. */
export const brief = (value) => (known(value) ? minus(String(Number(value.toPrecision(4)))) : UNKNOWN);

/** A fraction as a percentage. */
export const percent = (value) => (known(value) ? `${(100 * value).toFixed(1)} %` : UNKNOWN);

/** A count. */
export const count = (value) => (known(value) ? value.toLocaleString("en") : UNKNOWN);

/** Seconds as a person says them. */
export function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${(seconds / 3600).toFixed(1)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** `1 rollout`, `2 rollouts`. */
export const many = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
