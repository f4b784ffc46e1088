import { once } from "node:events";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { pipeline } from "node:stream/promises";

/** Sends commands to a guest that is kept (orders.sh). It must listen from the guest's start on, because the guest does not wait for it. */
export class Orders {
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async connect(path: string): Promise<Orders> {
    const socket = connect(path);
    await once(socket, "connect");
    // The guest's process reports that the guest has ended.
    socket.on("error", () => undefined).resume();
    return new Orders(socket);
  }

  async run(archive: string): Promise<void> {
    this.#socket.write(`${(await stat(archive)).size}\n`);
    await pipeline(createReadStream(archive), this.#socket, { end: false });
  }

  end(): void {
    this.#socket.end("0\n");
  }
}
