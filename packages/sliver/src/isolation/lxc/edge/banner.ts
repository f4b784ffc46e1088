import { connect } from "node:net";
import { type Clock, sleep } from "@nodeyard/runtime";

/** Milliseconds. A lost first packet would cost a second of waiting for the next one. */
const CONNECT_LIMIT = 100;
const BANNER_LIMIT = 5_000;
const BETWEEN = 5;

/** Resolves when an SSH server answers there; rejects with the signal's reason. */
export async function waitForSsh(address: string, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!(await answers(address, clock, signal))) await sleep(clock, BETWEEN, signal);
}

function answers(address: string, clock: Clock, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port: 22 });
    const end = (answer: boolean) => {
      timer.cancel();
      signal.removeEventListener("abort", onAbort);
      socket.destroy();
      resolve(answer);
    };
    const onAbort = () => end(false);
    let timer = clock.setTimer(CONNECT_LIMIT, () => end(false));
    signal.addEventListener("abort", onAbort, { once: true });
    socket.once("connect", () => {
      timer.cancel();
      timer = clock.setTimer(BANNER_LIMIT, () => end(false));
    });
    socket.once("data", (data) => end(data.toString("latin1").startsWith("SSH-")));
    socket.once("error", () => end(false));
    socket.once("end", () => end(false));
  });
}
