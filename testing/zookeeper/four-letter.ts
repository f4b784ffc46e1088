import { connect } from "node:net";
import { patient } from "../patience.ts";

/** Sends a four-letter command to the plain client port and returns the whole answer. */
export function fourLetter(port: number, command: string, limitMs = patient(60_000)): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1" });
    let text = "";
    socket.setEncoding("utf8");
    socket.setTimeout(limitMs, () =>
      socket.destroy(new Error(`${command} on port ${port}: no answer in ${limitMs} ms`)),
    );
    socket.once("connect", () => socket.write(command));
    socket.on("data", (part) => {
      text += part;
    });
    socket.once("error", reject);
    socket.once("close", () => resolve(text));
  });
}

/** The figures of `mntr`, by name. */
export async function mntr(port: number): Promise<Record<string, string>> {
  const text = await fourLetter(port, "mntr");
  const pairs = text.split("\n").map((line) => line.split("\t", 2));
  return Object.fromEntries(pairs.filter((pair) => pair.length === 2)) as Record<string, string>;
}
