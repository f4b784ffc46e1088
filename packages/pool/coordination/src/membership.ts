import { newComponent } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { retryInterrupted, type Session, type Tree } from "@nodeyard/tree";
import { Controller, type ControllerHandles } from "./controller.ts";
import { announceMember } from "./installation.ts";
import type { Registration } from "./registration.ts";

/** How a daemon appears to other members: the kind of its component, and the prefix of its member name before the host. */
export interface MemberIdentity {
  readonly kind: "launcher" | "builder";
  readonly prefix?: string;
  readonly hostname: string;
  readonly version: string;
}

/** Announces this process and its components to all members, again in each new session. */
export class Membership {
  readonly #handles: ControllerHandles & { readonly tree: Tree };
  readonly #identity: MemberIdentity;
  readonly #registration: Registration;
  /** `lost`: the session has ended. `renewed`: everything stands again in a new one. */
  readonly #on: { readonly lost?: () => void; readonly renewed: () => void };
  readonly #renewal: Controller;
  /** The session in which this process was announced last. */
  #epoch: number;
  #registered = false;
  #unsubscribe: () => void = () => {};

  constructor(
    handles: ControllerHandles & { readonly tree: Tree },
    identity: MemberIdentity,
    registration: Registration,
    on: { readonly lost?: () => void; readonly renewed: () => void },
  ) {
    this.#handles = handles;
    this.#identity = identity;
    this.#registration = registration;
    this.#on = on;
    this.#epoch = handles.tree.session().epoch;
    this.#renewal = new Controller(handles, {
      name: `membership of the ${identity.kind}`,
      site: "coordination/membership.ts",
      reconcile: () => this.#renew(),
      failed: (error, attempt) => {
        handles.log.warn(
          { error: messageOf(error) },
          "cannot register again after a lost session; will retry",
        );
        return Math.min(5_000, 100 * 2 ** attempt);
      },
    });
  }

  /** The name of this process under `/nodeyard/members` in the current session. */
  get name(): string {
    const { prefix = "", hostname } = this.#identity;
    return `${prefix}${hostname}-${this.#handles.tree.session().id.toString(16)}`;
  }

  /** Whether our components stand in this session: no pool accepts anything before. */
  get registered(): boolean {
    return this.#registered;
  }

  /** Makes the folders of the registry; before the view starts to follow them. */
  prepare(): Promise<void> {
    return retryInterrupted(this.#handles, () => this.#registration.prepare());
  }

  /** Announces the member and registers its component, then follows the session. Rejects when the tree refuses or stays away. */
  async begin(): Promise<void> {
    const { tree } = this.#handles;
    this.#epoch = tree.session().epoch;
    this.#unsubscribe = tree.onSession((session) => this.#onSession(session));
    await retryInterrupted(this.#handles, () => this.announce());
    const { kind, hostname, version } = this.#identity;
    await this.#registration.register(kind, newComponent({ kind, hostname, version, state: "running" }));
    // If the session was lost during the registration, #renew repeats it.
    this.#registered = tree.session().epoch === this.#epoch && tree.session().state !== "expired";
  }

  /** Also for its side effect: the reply tells the tree's time. */
  announce(): Promise<void> {
    return announceMember(this.#handles.tree, this.name, this.#identity.version);
  }

  /** A session that is lost from now on is not renewed. */
  stop(): void {
    void this.#renewal.close();
  }

  /** Leaves the registry, and follows the session no longer. */
  async leave(): Promise<void> {
    this.#unsubscribe();
    await this.#registration.unregister(this.#identity.kind);
  }

  #onSession(session: Session): void {
    if (session.state === "expired") {
      this.#registered = false;
      this.#on.lost?.();
    }
    if (session.state === "connected" && session.epoch !== this.#epoch) {
      this.#epoch = session.epoch;
      this.#renewal.wake();
    }
  }

  /**
   * Registers before any other work of a session: a pool serves nothing before it is registered. Only the announcement of the member comes
   * earlier, because other launchers take a pool whose session has no member for a pool of a Python launcher.
   */
  async #renew(): Promise<undefined> {
    const { tree } = this.#handles;
    const { epoch } = tree.session();
    await this.announce();
    await this.#registration.renew();
    if (epoch !== tree.session().epoch) return;
    this.#registered = true;
    this.#on.renewed();
  }
}
