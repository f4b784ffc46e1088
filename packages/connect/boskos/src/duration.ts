import { BoskosRefusal } from "./errors.ts";

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/** Milliseconds of a duration in Go's notation, such as `1h30m0s`. Throws BoskosRefusal in the words of Go. */
export function milliseconds(text: string): number {
  const digits = /^[+-]?(\d+\.?\d*|\.\d+)$/;
  if (text === "0") return 0;
  if (digits.test(text))
    throw new BoskosRefusal(400, `time: missing unit in duration ${JSON.stringify(text)}`);
  const parts = /^([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+)$/.exec(text);
  if (parts === null) throw new BoskosRefusal(400, `time: invalid duration ${JSON.stringify(text)}`);
  const [, sign, sum] = parts;
  const total = [...sum!.matchAll(/([\d.]+)(\D+)/g)].reduce(
    (ms, [, n, unit]) => ms + Number(n) * UNITS[unit!]!,
    0,
  );
  return sign === "-" ? -total : total;
}
