import type { Manager } from "./manager.ts";

/** Resolves when the machine has been looked at since `sequence`, or after `ms`. */
export function watched(manager: Manager, sequence: number, ms: number): Promise<void> {
  // After a restart counting begins anew: any other number is news.
  if (manager.sequence !== sequence) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      timer.cancel();
      forget();
      resolve();
    };
    const timer = manager.options.clock.setTimer(ms, end, { background: true });
    const forget = manager.onSync(end);
  });
}
