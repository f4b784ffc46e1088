import { signal } from "@preact/signals";
import { skewMs } from "./api.ts";

const TICK_MS = 1_000;

/** The server's time in milliseconds, updated every second. Only texts that show an age may depend on it. */
export const now = signal(Date.now());

export function startClock(): void {
  const tick = () => {
    if (!document.hidden) now.value = Date.now() + skewMs;
  };
  setInterval(tick, TICK_MS);
  document.addEventListener("visibilitychange", tick);
  tick();
}
