/** The xid of a watch event, as the protocol has it; replies have others. */
const EVENT_XID = -1;

/**
 * What a server sends on one connection, frame by frame, without the watch events while `dropping` says so. The first frame
 * answers the session request and has no xid.
 */
export class EventDropper {
  readonly #dropping: () => boolean;
  #rest: Buffer = Buffer.alloc(0);
  #first = true;
  /** Events dropped so far. */
  dropped = 0;

  constructor(dropping: () => boolean) {
    this.#dropping = dropping;
  }

  /** Takes the next bytes and returns those to forward now: whole frames only, with what was buffered before. */
  pass(bytes: Buffer): Buffer {
    const all = Buffer.concat([this.#rest, bytes]);
    const through: Buffer[] = [];
    let at = 0;
    while (all.length - at >= 4 && all.length - at >= 4 + all.readInt32BE(at)) {
      const end = at + 4 + all.readInt32BE(at);
      if (this.#takes(all.subarray(at + 4, end))) this.dropped++;
      else through.push(all.subarray(at, end));
      at = end;
    }
    this.#rest = all.subarray(at);
    return Buffer.concat(through);
  }

  #takes(frame: Buffer): boolean {
    if (this.#first) {
      this.#first = false;
      return false;
    }
    return frame.length >= 4 && frame.readInt32BE(0) === EVENT_XID && this.#dropping();
  }
}
