import {
  type Clock,
  DriverError,
  deadline,
  defined,
  polled,
  SharedValue,
  unlessRefused,
} from "@nodeyard/driver";
import type { SelfSubjectAccessReview } from "kubernetes-types/authorization/v1.d.ts";
import type { Secret } from "kubernetes-types/core/v1.d.ts";
import type { PolicyRule } from "kubernetes-types/rbac/v1.d.ts";
import type { Connection } from "../client/index.ts";

/** Service account of jobs. The name is Nodepool's, and the record's `user`. */
export const USER = "zuul-worker";

/** A role that is bound to a job's account. `rules`: it is made before, of these; absent: the cluster has it. */
interface Role {
  readonly kind: "Role" | "ClusterRole";
  readonly name: string;
  readonly rules?: readonly PolicyRule[];
}

/** All verbs of a collection but `deletecollection`. */
const ALL = ["create", "delete", "get", "list", "patch", "update", "watch"];
/** Verbs for `kubectl exec` and `port-forward`: GET for WebSockets, POST (create) for the older SPDY. */
const STREAMS = ["create", "get"];

/** Rights of a job in its own namespace. */
const NAMESPACE_RULES: readonly PolicyRule[] = [
  { apiGroups: [""], resources: ["pods", "services", "endpoints", "configmaps", "secrets"], verbs: ALL },
  { apiGroups: [""], resources: ["pods/exec", "pods/portforward"], verbs: STREAMS },
  { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
  { apiGroups: ["apps"], resources: ["deployments", "replicasets"], verbs: ALL },
  { apiGroups: ["batch"], resources: ["jobs", "cronjobs"], verbs: ALL },
];

/** Rights of a job on its pod. With `names`, only on this pod. RBAC cannot restrict `list` to names, so it is left out then. */
export function podRules(names?: string[]): readonly PolicyRule[] {
  const only = { apiGroups: [""], ...defined({ resourceNames: names }) };
  return [
    { ...only, resources: ["pods"], verbs: names === undefined ? ["get", "list"] : ["get"] },
    { ...only, resources: ["pods/exec", "pods/portforward"], verbs: STREAMS },
    { ...only, resources: ["pods/log"], verbs: ["get"] },
  ];
}

/** Not `admin`, as in Nodepool: that may delete the launcher's own binding, and change the project's description, by which it is known. */
export const PROJECT_ROLE: Role = { kind: "ClusterRole", name: "edit" };

const GROUP = "rbac.authorization.k8s.io";
const RBAC = `/apis/${GROUP}/v1`;
/** Cluster roles that an administrator can create: with the right to `bind` them, a launcher can grant rights that it has not itself. */
const SHARED = { namespace: "nodeyard-zuul", pod: "nodeyard-zuul-restricted" } as const;
/** Milliseconds until a secret must have its token. Without the token controller it never gets one. */
const SECRET_MS = 30_000;
/** Between two looks whether it has. */
const LOOK_MS = 500;
const NO_TOKEN = `got no token within ${SECRET_MS / 1000} s; the cluster's token controller does not run, or set token-lifetime`;
/** Looked up once: what changes later counts after the provider was opened again. */
export const ONCE = { freshMs: Number.POSITIVE_INFINITY, staleMs: Number.POSITIVE_INFINITY };

/** What `jobAccess` makes. */
export type JobAccess = ReturnType<typeof jobAccess>;

/** Gives each job a credential of its own with the rights it needs and no others. All methods may be repeated after a lost answer. */
export function jobAccess(connection: Connection, clock: Clock) {
  /** Whether both cluster roles exist and can be read. */
  const hasShared = new SharedValue({
    ...{ clock, what: "cluster roles of jobs", ...ONCE },
    load: async (signal) => {
      for (const name of Object.values(SHARED)) {
        const read = connection.get({ path: `${RBAC}/clusterroles/${name}`, signal });
        // A credential that may not read cluster roles cannot tell whether they exist.
        if ((await unlessRefused(read, 404, 403)) === undefined) return false;
      }
      return true;
    },
  });

  /** Creates an object under a name that only this driver uses. One that exists was created by an earlier attempt and is not changed. */
  const make = (path: string, body: object, signal: AbortSignal) =>
    unlessRefused(connection.post({ path, body, signal }), "AlreadyExists");

  /** The token of a secret, which the cluster's token controller fills in. It works as long as the account exists. */
  async function secretToken(namespace: string, user: string, signal: AbortSignal): Promise<string> {
    const secrets = `/api/v1/namespaces/${namespace}/secrets`;
    const metadata = { name: user, annotations: { "kubernetes.io/service-account.name": user } };
    await make(secrets, { metadata, type: "kubernetes.io/service-account-token" }, signal);
    const late = () => new DriverError("transient", `secret ${user} in ${namespace} ${NO_TOKEN}`);
    using limit = deadline(clock, SECRET_MS, late, signal);
    return await polled(clock, LOOK_MS, limit.signal, async () => {
      const { data } = await connection.get<Secret>({ path: `${secrets}/${user}`, signal: limit.signal });
      return data?.token && Buffer.from(data.token, "base64").toString();
    });
  }

  return {
    /** The role of jobs in namespaces of their own: the cluster's, or one that each namespace gets. */
    async roleOf(isPod: boolean, signal: AbortSignal): Promise<Role> {
      if (await hasShared.get(signal))
        return { kind: "ClusterRole", name: isPod ? SHARED.pod : SHARED.namespace };
      if (isPod) return { kind: "Role", name: "zuul-restricted", rules: podRules() };
      return { kind: "Role", name: "zuul", rules: NAMESPACE_RULES };
    },

    /**
     * Makes a service account and gives it the rights of a role. Pods that run as it get no token: the job has one in its record. `more`:
     * further metadata of what is made, such as owners. Rejects with a 403 when the launcher lacks a right that the rules grant.
     */
    async grant(
      namespace: string,
      user: string,
      { rules, ...role }: Role,
      binding: string,
      signal: AbortSignal,
      more: object = {},
    ): Promise<void> {
      const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
      const roles = `${RBAC}/namespaces/${namespace}`;
      const bind = async () => {
        // The role has to exist before its binding, because the API server reads it to check that the launcher may grant its rights
        // (https://kubernetes.io/docs/reference/access-authn-authz/rbac/, "Privilege escalation prevention and bootstrapping").
        if (rules !== undefined)
          await make(`${roles}/roles`, { metadata: { name: role.name, ...more }, rules }, signal);
        const body = {
          metadata: { name: binding, ...more },
          roleRef: { apiGroup: GROUP, ...role },
          subjects: [{ kind: "ServiceAccount", name: user, namespace }],
        };
        await make(`${roles}/rolebindings`, body, signal);
      };
      const account = { metadata: { name: user, ...more }, automountServiceAccountToken: false };
      // The binding may be created before its account: RBAC does not check that a subject exists.
      await Promise.all([make(accounts, account, signal), bind()]);
    },

    /** A token of a service account, with which it ends, or after `lifetimeMs`, or as the server limits. 0: that of a secret, without an end. */
    async token(namespace: string, user: string, lifetimeMs: number, signal: AbortSignal): Promise<string> {
      if (lifetimeMs === 0) return secretToken(namespace, user, signal);
      // The TokenRequest API refuses lifetimes below ten minutes.
      const spec = { expirationSeconds: Math.max(600, Math.round(lifetimeMs / 1000)) };
      const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${user}/token`;
      const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
      // Each call makes another token. Earlier ones stay valid until they expire, so a repeated call harms nothing.
      return (await connection.post<{ status: { token: string } }>({ path, body, signal })).status.token;
    },

    /** Why the server would not let this credential create job credentials in a project; undefined when it would. Everybody may ask. */
    async refusal(namespace: string, signal: AbortSignal): Promise<string | undefined> {
      const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
      for (const wanted of [
        { resource: "serviceaccounts" },
        { resource: "serviceaccounts", subresource: "token" },
        { resource: "roles", group: GROUP },
        { resource: "rolebindings", group: GROUP },
      ]) {
        const body = { spec: { resourceAttributes: { namespace, verb: "create", ...wanted } } };
        const { status } = await connection.post<SelfSubjectAccessReview>({ path, body, signal });
        const { resource, subresource } = wanted;
        if (!status?.allowed) return `may not create ${[resource, subresource].filter(Boolean).join("/")}`;
      }
      return undefined;
    },
  };
}
