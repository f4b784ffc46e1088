/** A JSON line of the log as text: `2026-01-31T10:00:00.000Z WARN message key=value`. Facts stay machine-readable JSON. */
export function textLine(json: string): string {
  const { time, level, message, ...facts } = JSON.parse(json) as Record<string, unknown>;
  const rest = Object.entries(facts).map(([key, value]) => ` ${key}=${fact(value)}`);
  return `${time} ${String(level).toUpperCase()} ${message}${rest.join("")}\n`;
}

function fact(value: unknown): string {
  return typeof value === "string" && /^[\w./:@+-]+$/.test(value) ? value : (JSON.stringify(value) ?? "null");
}
