import { type Clock, DriverError, type Random, sleep, unlessRefused, wasRefused } from "@nodeyard/driver";
import { defined } from "@nodeyard/runtime";
import type { Connection } from "../client/index.ts";

/** Service account of jobs. The name is Nodepool's, and the record's `user`. */
export const USER = "zuul-worker";

/** A rule of a role (PolicyRule of rbac.authorization.k8s.io). `resourceNames` absent: all objects of these resources. */
interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** All verbs of a collection but `deletecollection`. */
const ALL = ["create", "delete", "get", "list", "patch", "update", "watch"];
/** Verbs for `kubectl exec` and `port-forward`: GET for WebSockets, POST (create) for the older SPDY. */
const STREAMS = ["create", "get"];

/** Rights of a job in its own namespace. */
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

/** Rights of a job on its pod. With `names`, only on this pod. RBAC cannot restrict `list` to names, so it is left out then. */
export function podRules(names?: readonly string[]): readonly Rule[] {
  const only = defined({ resourceNames: names });
  const read = names === undefined ? ["get", "list"] : ["get"];
  return [
    { apiGroups: [""], resources: ["pods"], verbs: read, ...only },
    { apiGroups: [""], resources: ["pods/exec", "pods/portforward"], verbs: STREAMS, ...only },
    { apiGroups: [""], resources: ["pods/log"], verbs: ["get"], ...only },
  ];
}

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
/**
 * Cluster roles that an administrator can create. RBAC lets a subject grant only rights that it has itself, or that a role it may
 * `bind` has. With these roles the launcher needs `bind` only.
 */
const SHARED = { namespace: "nodeyard-zuul", pod: "nodeyard-zuul-restricted" } as const;
/** Milliseconds until a secret must have its token. Without the token controller it never gets one. */
const SECRET_MS = 30_000;

/**
 * Gives each job a credential of its own with the rights it needs and no others. There is one per provider. All methods may be
 * repeated after a lost answer; they reject with the client's errors.
 */
export class JobAccess {
  readonly #connection: Connection;
  readonly #handles: { readonly clock: Clock; readonly random: Random };
  /** Answer of `#hasShared`; undefined before the first call and after one that failed. */
  #shared: Promise<boolean> | undefined;

  constructor(connection: Connection, handles: { readonly clock: Clock; readonly random: Random }) {
    this.#connection = connection;
    this.#handles = handles;
  }

  /** Creates a service account in the node's namespace and binds it to its role. Safe to repeat. */
  async grantIn(namespace: string, isPod: boolean, signal: AbortSignal): Promise<void> {
    // The binding may be created before its account: RBAC does not check that a subject exists.
    const account = this.serviceAccount(namespace, USER, {}, signal);
    const role = async () => {
      const name = isPod ? "zuul-restricted" : "zuul";
      // The role has to exist before its binding, because the API server reads it to check that the launcher may grant its rights
      // (https://kubernetes.io/docs/reference/access-authn-authz/rbac/, "Privilege escalation prevention and bootstrapping").
      const isShared = await this.#hasShared(signal);
      if (!isShared) await this.role(namespace, name, isPod ? podRules() : NAMESPACE_RULES, {}, signal);
      const ref = isShared
        ? { kind: "ClusterRole", name: isPod ? SHARED.pod : SHARED.namespace }
        : { kind: "Role", name };
      await this.bind(namespace, "zuul-role", ref, USER, {}, signal);
    };
    await Promise.all([account, role()]);
  }

  /**
   * Creates a service account. Pods that run as it get no token: the job has one in its record. `more`: further metadata, such as owners.
   */
  async serviceAccount(namespace: string, name: string, more: object, signal: AbortSignal): Promise<void> {
    const body = { metadata: { name, ...more }, automountServiceAccountToken: false };
    await this.#make(`/api/v1/namespaces/${namespace}/serviceaccounts`, body, signal);
  }

  /** Creates a role. Rejects with a 403 when the launcher lacks a right that the rules grant. */
  async role(
    namespace: string,
    name: string,
    rules: readonly Rule[],
    more: object,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#make(`${RBAC}/namespaces/${namespace}/roles`, { metadata: { name, ...more }, rules }, signal);
  }

  /** Gives a service account of the same namespace the rights of a role. */
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
   * A token of a service account. It becomes invalid with the account, after `lifetimeMs`, or sooner when the server limits tokens. 0: the
   * token of a secret, which does not expire.
   */
  async token(namespace: string, user: string, lifetimeMs: number, signal: AbortSignal): Promise<string> {
    if (lifetimeMs === 0) return this.#secretToken(namespace, user, signal);
    // The TokenRequest API refuses lifetimes below ten minutes.
    const spec = { expirationSeconds: Math.max(600, Math.round(lifetimeMs / 1000)) };
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${user}/token`;
    const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
    // Each call makes another token. Earlier ones stay valid until they expire, so a repeated call harms nothing.
    const { status } = await this.#connection.post<{ status: { token: string } }>({ path, body, signal });
    return status.token;
  }

  /**
   * The token of a secret, which the cluster's token controller fills in; for `token-lifetime: 0`. It works as long as the
   * account exists.
   */
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

  /**
   * Why the server would not let this credential create job credentials in a project; undefined when it would. Asked when a
   * provider opens, so that operators learn it before the first job. Every authenticated user may ask (SelfSubjectAccessReview).
   */
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

  /**
   * Whether both cluster roles exist and can be read. Asked once per provider; roles that are created later are seen after the
   * provider was opened again.
   */
  #hasShared(signal: AbortSignal): Promise<boolean> {
    this.#shared ??= this.#lookForShared(signal).catch((error: unknown) => {
      this.#shared = undefined;
      throw error;
    });
    return this.#shared;
  }

  /** A credential that may not read cluster roles cannot tell whether they exist. Then each namespace gets a role of its own. */
  async #lookForShared(signal: AbortSignal): Promise<boolean> {
    for (const name of Object.values(SHARED)) {
      try {
        await this.#connection.get({ path: `${RBAC}/clusterroles/${name}`, signal });
      } catch (error) {
        if (wasRefused(error, 404, 403)) return false;
        throw error;
      }
    }
    return true;
  }

  /** Creates an object under a name that only this driver uses. One that exists was created by an earlier attempt and is not changed. */
  async #make(path: string, body: object, signal: AbortSignal): Promise<void> {
    await unlessRefused(this.#connection.post({ path, body, signal }), "AlreadyExists");
  }
}
