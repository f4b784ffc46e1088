import { newComponent } from "@nodeyard/model";
import { messageOf, sleep } from "@nodeyard/runtime";
import type { Session } from "@nodeyard/tree";
import { announceMember, type Registration, retryInterrupted } from "../coordination/index.ts";
import type { LauncherOptions } from "./options.ts";

type Handles = Pick<LauncherOptions, "tree" | "clock" | "random" | "log" | "identity">;

/** Our place among all members, in every session anew: what we announce and the components that others see. */
export class Membership {
  readonly #handles: Handles;
  readonly #registration: Registration;
  readonly #on: { readonly lost: () => void; readonly renewed: () => void };
  #epoch: number;
  #registered = false;
  #closed = false;
  #unsubscribe: () => void = () => {};

  constructor(
    handles: Handles,
    registration: Registration,
    on: { readonly lost: () => void; readonly renewed: () => void },
  ) {
    this.#handles = handles;
    this.#registration = registration;
    this.#on = on;
    this.#epoch = handles.tree.session().epoch;
  }

  /** What we are called under `/nodeyard/members` in this session. */
  get name(): string {
    const { identity, tree } = this.#handles;
    return `${identity.hostname}-${tree.session().id.toString(16)}`;
  }

  /** Whether our components stand in this session: no pool accepts anything before. */
  get registered(): boolean {
    return this.#registered;
  }

  prepare(): Promise<void> {
    return retryInterrupted(this.#handles, () => this.#registration.prepare());
  }

  async begin(): Promise<void> {
    const { tree, identity } = this.#handles;
    this.#epoch = tree.session().epoch;
    this.#unsubscribe = tree.onSession((session) => this.#onSession(session));
    await retryInterrupted(this.#handles, () => this.announce());
    const { hostname, version } = identity;
    const component = newComponent({ kind: "launcher", hostname, version, state: "running" });
    await this.#registration.register("launcher", component);
    // What follows a session that was lost meanwhile is up to #renew.
    this.#registered = tree.session().epoch === this.#epoch && tree.session().state !== "expired";
  }

  announce(): Promise<void> {
    const { tree, identity } = this.#handles;
    return announceMember(tree, this.name, identity.version);
  }

  /** A session that is lost from now on is not renewed. */
  stop(): void {
    this.#closed = true;
  }

  /** What becomes of the session is nobody's concern any more. */
  unfollow(): void {
    this.#unsubscribe();
  }

  leave(): Promise<void> {
    return this.#registration.unregister("launcher");
  }

  #onSession(session: Session): void {
    if (session.state === "expired") {
      this.#registered = false;
      this.#on.lost();
    }
    if (session.state === "connected" && session.epoch !== this.#epoch) {
      this.#epoch = session.epoch;
      void this.#renew();
    }
  }

  /**
   * Registration before anything else: no pool serves what it is not registered for. Only the announcement goes before it, since a pool of
   * a session that no member has is taken for one of a launcher of another kind.
   */
  async #renew(): Promise<void> {
    const { tree, log, clock } = this.#handles;
    const { epoch } = tree.session();
    for (let attempt = 0; epoch === tree.session().epoch && !this.#closed; attempt++) {
      try {
        await this.announce();
        await this.#registration.renew();
        if (epoch !== tree.session().epoch) return;
        this.#registered = true;
        return this.#on.renewed();
      } catch (error) {
        log.warn({ error: messageOf(error) }, "cannot register again after a lost session; will retry");
        await sleep(clock, Math.min(5_000, 100 * 2 ** attempt));
      }
    }
  }
}
