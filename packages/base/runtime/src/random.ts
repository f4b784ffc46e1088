/** Randomness of a process. Simulations replace it by `seededRandom`. */
export interface Random {
  /** Uniform in [0, 1). */
  float(): number;
  /** A version 4 UUID, with dashes. */
  uuid(): string;
}

/** 32 lower-case hexadecimal digits, the form that lock contenders and event ids use. */
export function hexId(random: Random): string {
  return random.uuid().replaceAll("-", "");
}

/** `ms` changed randomly by up to ±`share` (0.25: a quarter). */
export function jitter(random: Random, ms: number, share = 0.25): number {
  return ms * (1 + share * (2 * random.float() - 1));
}

/** Delay before retry `attempt` (from 0): doubles from `base` up to `cap`, with ±40 % jitter. */
export function backoff(random: Random, attempt: number, base: number, cap: number): number {
  return jitter(random, Math.min(cap, base * 2 ** Math.min(attempt, 30)), 0.4);
}

/** A sequence that depends on the seed only (mulberry32). Not for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const float = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const hex = (digits: number) => {
    let text = "";
    while (text.length < digits) text += Math.floor(float() * 16).toString(16);
    return text;
  };
  const uuid = () => {
    const variant = (8 + Math.floor(float() * 4)).toString(16);
    return `${hex(8)}-${hex(4)}-4${hex(3)}-${variant}${hex(3)}-${hex(12)}`;
  };
  return { float, uuid };
}
