import { type Clock, DriverError, type Random, sleep } from "@nodeyard/driver";
import { type Connection, KubeError } from "../client/index.ts";

/** The service account of a job; Zuul's and Nodepool's name for it, which the record shows as `user`. */
export const USER = "zuul-worker";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

const ALL = ["create", "delete", "get", "list", "patch", "update", "watch"];
/** What `kubectl exec` and `port-forward` need: GET is the verb of their WebSockets, POST that of the older SPDY. */
const STREAMS = ["create", "get"];

/** What a job may do with a namespace of its own. */
const NAMESPACE_RULES: readonly Rule[] = [
  {
    apiGroups: [""],
    resources: ["pods", "services", "endpoints", "configmaps", "secrets"],
    verbs: ALL,
  },
  { apiGroups: [""], resources: ["pods/exec", "pods/portforward"], verbs: STREAMS },
  { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
  { apiGroups: ["apps"], resources: ["deployments", "replicasets"], verbs: ALL },
  { apiGroups: ["batch"], resources: ["jobs", "cronjobs"], verbs: ALL },
];

/** What a job may do with its pod. `names`: of this pod alone; then it cannot list, since a list has no names. */
export function podRules(names?: readonly string[]): readonly Rule[] {
  const only = names === undefined ? {} : { resourceNames: names };
  const read = names === undefined ? ["get", "list"] : ["get"];
  return [
    { apiGroups: [""], resources: ["pods"], verbs: read, ...only },
    { apiGroups: [""], resources: ["pods/exec", "pods/portforward"], verbs: STREAMS, ...only },
    { apiGroups: [""], resources: ["pods/log"], verbs: ["get"], ...only },
  ];
}

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
/** Cluster roles that an administrator may have made; with them a launcher needs no right that it hands on. */
const SHARED = { namespace: "nodeyard-zuul", pod: "nodeyard-zuul-restricted" } as const;
/** A secret gets its token within a moment, or its controller is not running, milliseconds. */
const SECRET_MS = 30_000;

/** Gives jobs their own credentials, with no more rights than they need. */
export class JobAccess {
  readonly #connection: Connection;
  readonly #handles: { readonly clock: Clock; readonly random: Random };
  #shared: Promise<boolean> | undefined;

  constructor(connection: Connection, handles: { readonly clock: Clock; readonly random: Random }) {
    this.#connection = connection;
    this.#handles = handles;
  }

  /** A service account in a namespace of the node, bound to the role for it. Twice: nothing more. */
  async grantIn(namespace: string, isPod: boolean, signal: AbortSignal): Promise<void> {
    const account = this.serviceAccount(namespace, USER, {}, signal);
    const role = async () => {
      const name = isPod ? "zuul-restricted" : "zuul";
      const isShared = await this.#hasShared(signal);
      if (!isShared) await this.role(namespace, name, isPod ? podRules() : NAMESPACE_RULES, {}, signal);
      const ref = isShared
        ? { kind: "ClusterRole", name: isPod ? SHARED.pod : SHARED.namespace }
        : { kind: "Role", name };
      await this.bind(namespace, "zuul-role", ref, USER, {}, signal);
    };
    await Promise.all([account, role()]);
  }

  async serviceAccount(namespace: string, name: string, more: object, signal: AbortSignal): Promise<void> {
    const body = { metadata: { name, ...more }, automountServiceAccountToken: false };
    await this.#make(`/api/v1/namespaces/${namespace}/serviceaccounts`, body, signal);
  }

  async role(
    namespace: string,
    name: string,
    rules: readonly Rule[],
    more: object,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#make(`${RBAC}/namespaces/${namespace}/roles`, { metadata: { name, ...more }, rules }, signal);
  }

  async bind(
    namespace: string,
    name: string,
    role: { readonly kind: string; readonly name: string },
    user: string,
    more: object,
    signal: AbortSignal,
  ): Promise<void> {
    const body = {
      metadata: { name, ...more },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", ...role },
      subjects: [{ kind: "ServiceAccount", name: user, namespace }],
    };
    await this.#make(`${RBAC}/namespaces/${namespace}/rolebindings`, body, signal);
  }

  /**
   * A token of a service account. It ends with the account, and by itself after `lifetimeMs`, or sooner where the server bounds tokens; 0: it
   * is that of a secret.
   */
  async token(namespace: string, user: string, lifetimeMs: number, signal: AbortSignal): Promise<string> {
    if (lifetimeMs === 0) return this.#secretToken(namespace, user, signal);
    // The API takes no less than ten minutes.
    const spec = { expirationSeconds: Math.max(600, Math.round(lifetimeMs / 1000)) };
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${user}/token`;
    const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
    const { status } = await this.#connection.post<{ status: { token: string } }>({ path, body, signal });
    return status.token;
  }

  async #secretToken(namespace: string, user: string, signal: AbortSignal): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/secrets`;
    const metadata = { name: user, annotations: { "kubernetes.io/service-account.name": user } };
    await this.#make(path, { metadata, type: "kubernetes.io/service-account-token" }, signal);
    const { clock } = this.#handles;
    const began = clock.monotonic();
    for (let pauseMs = 50; ; pauseMs = Math.min(1000, pauseMs * 2)) {
      const { data } = await this.#connection.get<{ data?: { token?: string } }>({
        path: `${path}/${user}`,
        signal,
      });
      if (data?.token !== undefined) return Buffer.from(data.token, "base64").toString("utf8");
      if (clock.monotonic() - began > SECRET_MS)
        throw new DriverError(
          "transient",
          `secret ${user} in ${namespace} got no token within ${SECRET_MS / 1000} s; the cluster's token controller does not run, or set token-lifetime`,
        );
      await sleep(clock, pauseMs, signal);
    }
  }

  /** Why this credential cannot make ones for jobs in a project, as the server says; undefined: it can. */
  async refusal(namespace: string, signal: AbortSignal): Promise<string | undefined> {
    const wanted = [
      ["", "serviceaccounts", ""],
      ["", "serviceaccounts", "token"],
      ["rbac.authorization.k8s.io", "roles", ""],
      ["rbac.authorization.k8s.io", "rolebindings", ""],
    ] as const;
    const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (const [group, resource, subresource] of wanted) {
      const resourceAttributes = { namespace, verb: "create", group, resource, subresource };
      const body = { spec: { resourceAttributes } };
      const { status } = await this.#connection.post<{ status: { allowed: boolean } }>({
        path,
        body,
        signal,
      });
      if (!status.allowed) return `may not create ${[resource, subresource].filter(Boolean).join("/")}`;
    }
    return undefined;
  }

  /** Once per process: both cluster roles are there and readable. */
  #hasShared(signal: AbortSignal): Promise<boolean> {
    this.#shared ??= this.#lookForShared(signal).catch((error: unknown) => {
      this.#shared = undefined;
      throw error;
    });
    return this.#shared;
  }

  async #lookForShared(signal: AbortSignal): Promise<boolean> {
    for (const name of Object.values(SHARED)) {
      try {
        await this.#connection.get({ path: `${RBAC}/clusterroles/${name}`, signal });
      } catch (error) {
        if (error instanceof KubeError && (error.status === 404 || error.status === 403)) return false;
        throw error;
      }
    }
    return true;
  }

  /** Makes an object whose name is ours alone: one that exists was made by an earlier try. */
  async #make(path: string, body: object, signal: AbortSignal): Promise<void> {
    try {
      await this.#connection.post({ path, body, signal });
    } catch (error) {
      if (!(error instanceof KubeError && error.reason === "AlreadyExists")) throw error;
    }
  }
}
