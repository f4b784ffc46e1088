import { once } from "node:events";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { pipeline } from "node:stream/promises";

/** Gives orders to a guest that is kept (orders.sh). It must be held from the guest's start on: nobody there waits for it. */
export class Orders {
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async connect(path: string): Promise<Orders> {
    const socket = connect(path);
    await once(socket, "connect");
    // That the guest has ended is told by its machine.
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
