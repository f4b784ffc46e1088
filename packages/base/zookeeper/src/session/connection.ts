import { AuthFailed, ConnectionLost, errorFromCode, ZooKeeperError } from "../errors.ts";
import type { AuthInfo, Credentials, Endpoint, Timer } from "../types.ts";
import {
  type ConnectRequest,
  type ConnectResponse,
  connectResponse,
  type WatcherEvent,
} from "../wire/messages.ts";
import { OpCode, Xid } from "../wire/op-code.ts";
import type { JuteReader } from "../wire/reader.ts";
import { Channel, type Sums } from "./channel.ts";
import { answerChallenge } from "./digest-md5.ts";
import { Heartbeat } from "./heartbeat.ts";
import { ANY_EPOCH, Pending, type ReplyCallback } from "./pending.ts";
import type { Settings } from "./settings.ts";

/** The connection's link to its session. After `over` no callback follows. */
export interface ConnectionCallbacks {
  connectRequest(): ConnectRequest;
  /** Checks the server's handshake. A returned error refuses the server and ends the connection. */
  welcomed(response: ConnectResponse): Error | undefined;
  /** The server has accepted the credentials: operations may be sent. */
  ready(): void;
  event(event: WatcherEvent, zxid: bigint): void;
  room(): void;
  over(cause: Error): void;
}

type AuthCallback = (error: ZooKeeperError | undefined) => void;

/**
 * One connection attempt, from the first packet to the last: handshake, credentials, pings. It ends for one reason, which `over` gets:
 * a time limit, a refusal, a broken link or a silent server. It is never used again; the dialer makes the next one.
 */
export class Connection {
  readonly channel: Channel;
  readonly #settings: Settings;
  readonly #endpoint: Endpoint;
  readonly #callbacks: ConnectionCallbacks;
  readonly #auth: readonly AuthInfo[];
  /** Credentials without an answer, in the order in which they were sent, which is that of the answers. */
  readonly #authWaiting: AuthCallback[] = [];
  /** Ends the attempt when the connection is not ready in time. Cancelled when it is. */
  readonly #limit: Timer;
  /** Undefined until the server has answered the request for a session. */
  #heartbeat: Heartbeat | undefined;
  /** Monotonic milliseconds. */
  #connectSentAt = 0;
  /** The request for a session was sent. */
  #asked = false;
  #over = false;

  constructor(
    endpoint: Endpoint,
    limitMs: number,
    settings: Settings,
    chroot: string,
    auth: readonly AuthInfo[],
    sums: Sums,
    callbacks: ConnectionCallbacks,
  ) {
    this.#settings = settings;
    this.#endpoint = endpoint;
    this.#callbacks = callbacks;
    this.#auth = auth;
    this.#limit = settings.clock.setTimer(limitMs, () =>
      this.end(this.#lost(`not connected after ${limitMs} ms`)),
    );
    this.channel = new Channel(endpoint, settings, chroot, sums, {
      opened: () => this.#opened(),
      handshake: (reader) => this.#handshake(reader),
      control: (xid, err) => this.#control(xid, err),
      event: (event, zxid) => callbacks.event(event, zxid),
      room: () => callbacks.room(),
      closed: (cause) => this.end(this.#lost(this.#howClosed(), cause)),
    });
  }

  /** Monotonic time at which the last answered request was sent. */
  get answeredSentAt(): number {
    return this.channel.answeredSentAt;
  }

  /** The server was asked for a session and has not answered. */
  get unanswered(): boolean {
    return this.#asked && this.#heartbeat === undefined;
  }

  /** HOST:PORT, with the address if that is another. */
  get place(): string {
    const { host, port, address } = this.#endpoint;
    return host === address ? `${host}:${port}` : `${host}:${port} (${address})`;
  }

  /** Sends credentials to the server. `done` receives the error with which the server refused them, or undefined. */
  authenticate(info: AuthInfo, done: AuthCallback): void {
    const auth = typeof info.auth === "string" ? Buffer.from(info.auth) : info.auth;
    this.channel.sendControl(Xid.auth, { type: OpCode.auth, scheme: info.scheme, auth });
    this.#authWaiting.push(done);
  }

  /** Ends the connection and reports the cause to the owner. */
  end(cause: Error): void {
    if (this.#over) return;
    this.close();
    for (const done of this.#authWaiting.splice(0)) done(new ConnectionLost({ op: "auth", cause }));
    this.#callbacks.over(cause);
  }

  /** Ends the connection without a callback. */
  close(): void {
    this.#over = true;
    this.#limit.cancel();
    this.#heartbeat?.stop();
    this.channel.close();
  }

  /** The socket is open: asks for a session first, as the protocol demands. */
  #opened(): void {
    this.#asked = true;
    this.#connectSentAt = this.channel.turn();
    this.channel.sendConnect(this.#callbacks.connectRequest());
  }

  /** Takes the answer to the request for a session, then sends all credentials before any operation. */
  #handshake(reader: JuteReader): void {
    const response = connectResponse.read(reader);
    // The server began to count the session's timeout after this request was sent (rule 1).
    if (response.timeOut > 0) this.channel.answeredSentAt = this.#connectSentAt;
    const refusal = this.#callbacks.welcomed(response);
    if (refusal !== undefined) {
      this.end(refusal);
      return;
    }
    this.#heartbeat = new Heartbeat(this.#settings.clock, response.timeOut, this.#beating());
    for (const info of this.#auth) {
      this.authenticate(info, (error) => {
        if (error !== undefined) this.end(error);
      });
    }
    if (this.#settings.sasl === undefined) this.#ready();
    else this.#startSasl(this.#settings.sasl);
  }

  #ready(): void {
    this.#limit.cancel();
    this.#callbacks.ready();
  }

  /** SASL with DIGEST-MD5. The server's proof is checked too, so that a false server does not get the client's trust. */
  #startSasl(credentials: Credentials): void {
    this.#sasl(Buffer.alloc(0), (challenge) => {
      const cnonce = this.#settings.random.uuid().replaceAll("-", "");
      const answer = answerChallenge(challenge, credentials, cnonce);
      this.#sasl(Buffer.from(answer.token), (proof) => {
        if (proof !== answer.serverProof)
          throw new AuthFailed("the server does not know the SASL password itself");
        this.#ready();
      });
    });
  }

  /** One step of the SASL exchange. */
  #sasl(token: Buffer, next: (answer: string) => void): void {
    const onReply: ReplyCallback = (error, response) => {
      if (this.#over) return;
      if (error !== undefined) {
        this.end(new AuthFailed("the server refuses the SASL credentials", { cause: error }));
        return;
      }
      try {
        next((response as { readonly token: Buffer }).token.toString());
      } catch (thrown) {
        this.end(thrown as Error);
      }
    };
    this.channel.send(
      new Pending({ type: OpCode.sasl, token }, onReply, Number.POSITIVE_INFINITY, 0, ANY_EPOCH),
    );
  }

  /** Takes the reply to a ping, to credentials or to setWatches. */
  #control(xid: number, err: number): void {
    if (xid === Xid.ping) {
      const sentAt = this.#heartbeat?.pong();
      if (sentAt !== undefined && sentAt > this.channel.answeredSentAt) this.channel.answeredSentAt = sentAt;
    } else if (xid === Xid.auth) {
      const refusal =
        err === 0 ? undefined : new AuthFailed(`the server refuses the credentials (error ${err})`);
      this.#authWaiting.shift()?.(refusal);
    } else if (err !== 0) {
      // The server did not set the watches again. Their events would be missed unnoticed, so end the connection and try another.
      this.end(errorFromCode(err, { op: "setWatches2" }));
    }
  }

  /** What the heartbeat needs of this connection. */
  #beating() {
    const { channel } = this;
    return {
      get lastSentAt() {
        return channel.lastSentAt;
      },
      get lastReceivedAt() {
        return channel.lastReceivedAt;
      },
      ping: () => channel.sendControl(Xid.ping, { type: OpCode.ping }),
      silent: (ms: number) => this.end(this.#lost(`no packet received for ${Math.round(ms)} ms`)),
    };
  }

  /** A server closes the connection without a reply when it is behind the client's zxid, has too many connections, or has no quorum. */
  #howClosed(): string {
    return this.unanswered
      ? "the connection was closed with the request for a session unanswered"
      : "the connection was closed";
  }

  /** An error that names the server. */
  #lost(why: string, cause?: Error): ZooKeeperError {
    if (cause instanceof ZooKeeperError) return cause;
    const because = cause === undefined ? "" : `: ${cause.message}`;
    return new ZooKeeperError("zookeeper.disconnected", `${this.place}: ${why}${because}`, { cause });
  }
}
