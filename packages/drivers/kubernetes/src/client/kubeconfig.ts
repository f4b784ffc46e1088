import { CloudConfigError, parseCloudFile } from "@nodeyard/driver";
import type { TlsOptions } from "@nodeyard/driver/http";
import { messageOf } from "@nodeyard/runtime";

/** Environment, files and programs that credentials are read from. Tests pass their own. */
export interface KubeFiles {
  /** KUBECONFIG and the KUBERNETES_SERVICE_* variables of a pod are read. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of `.kube/config`. */
  readonly home: string;
  /** Undefined when the file does not exist. Read each time, because tokens and certificates are replaced in place. */
  read(path: string): string | undefined;
  /** The proxy that the environment names for a server; null: none. */
  proxy(server: string): string | null;
  /** Runs a credential plugin and returns its output. A relative command is looked up in `folder`. */
  run(command: PluginCommand, signal: AbortSignal): Promise<string>;
}

/**
 * A credential plugin of a kubeconfig (https://kubernetes.io/docs/reference/access-authn-authz/authentication/, "client-go
 * credential plugins").
 */
export interface PluginCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** Variables beside those of this process. */
  readonly env: Readonly<Record<string, string>>;
}

/** Connection settings of one API server. Certificates are contents, not paths. */
export interface Route extends TlsOptions {
  /** `http://`, `https://` or `socks5://`. */
  readonly proxy: string | null;
}

/** Address and credentials of a cluster. */
export interface Access {
  /** Address of the API server, without a slash at the end. */
  readonly server: string;
  readonly route: Route;
  /** Value of the `authorization` header; null when the client certificate authenticates. */
  readonly authorization: string | null;
  /** Expiry, milliseconds since 1970; null when unknown. */
  readonly expires: number | null;
}

/** A cluster of a kubeconfig. Keys and meaning: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/ */
interface Cluster {
  readonly server?: string;
  readonly "certificate-authority"?: string;
  readonly "certificate-authority-data"?: string;
  readonly "insecure-skip-tls-verify"?: boolean;
  readonly "tls-server-name"?: string;
  readonly "proxy-url"?: string;
}

/**
 * A user of a kubeconfig. Of several credentials a plugin's counts before a token file, a token, and user name with password. A
 * client certificate is sent with any of them.
 */
interface User {
  readonly token?: string;
  readonly tokenFile?: string;
  readonly username?: string;
  readonly password?: string;
  readonly "client-certificate"?: string;
  readonly "client-certificate-data"?: string;
  readonly "client-key"?: string;
  readonly "client-key-data"?: string;
  readonly exec?: {
    readonly apiVersion?: string;
    readonly command?: string;
    readonly args?: readonly string[] | null;
    readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
    readonly provideClusterInfo?: boolean;
    readonly installHint?: string;
  };
}

interface KubeConfig {
  readonly "current-context"?: string;
  readonly contexts?: readonly Named<"context", { readonly cluster?: string; readonly user?: string }>[];
  readonly clusters?: readonly Named<"cluster", Cluster>[];
  readonly users?: readonly Named<"user", User>[];
}

type Named<K extends string, V> = { readonly name: string } & { readonly [P in K]?: V };
/** An entry with the folder of its file, ending in a slash: relative paths in it start there. */
type Found<V> = V & { readonly folder: string };

/** Folder in which the kubelet mounts the credentials of a pod's service account. */
const IN_CLUSTER = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * The access of a context. Without `context`: that of `current-context`, or of the pod that this process runs in when there is no
 * kubeconfig. Throws CloudConfigError.
 */
export async function resolveAccess(
  context: string | null,
  files: KubeFiles,
  signal: AbortSignal,
): Promise<Access> {
  const configs = readConfigs(files);
  if (configs.length === 0) {
    const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = files.env;
    if (host !== undefined && context === null) return inCluster(files, host, port);
    throw new CloudConfigError(
      `there is no kubeconfig ${files.env.KUBECONFIG || "~/.kube/config"}, and this is no pod of a cluster; write it, or name another in KUBECONFIG`,
    );
  }
  const wanted = context ?? configs.map(({ config }) => config["current-context"]).find(Boolean);
  if (wanted === undefined)
    throw new CloudConfigError("the kubeconfig has no current-context; set `context` of the provider");
  const chosen = find(configs, "contexts", "context", wanted);
  const cluster = find(configs, "clusters", "cluster", chosen.cluster ?? "");
  const user =
    chosen.user === undefined || chosen.user === ""
      ? ({ folder: "" } as Found<User>)
      : find(configs, "users", "user", chosen.user);
  refuseUnsupported(user, chosen.user ?? "");
  return accessOf(cluster, user, files, signal);
}

function readConfigs({ env, home, read }: KubeFiles) {
  // KUBECONFIG may name several files. One that does not exist is skipped, as in kubectl.
  const paths = (env.KUBECONFIG ?? "").split(":").filter((path) => path !== "");
  return (paths.length > 0 ? paths : [`${home}/.kube/config`]).flatMap((path) => {
    try {
      const text = read(path);
      const config = text === undefined ? null : (words(parseCloudFile(text)) as KubeConfig | null);
      if (config !== null && typeof config !== "object") throw new Error("it is no mapping");
      return config === null ? [] : [{ config, folder: path.slice(0, path.lastIndexOf("/") + 1) }];
    } catch (error) {
      throw new CloudConfigError(`${path} cannot be read: ${messageOf(error)}`, { cause: error });
    }
  });
}

/** With numbers as text: tokens, passwords and names may be written without quotes. Of the keys that are read, none is a number. */
function words(value: unknown): unknown {
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return value.map(words);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, words(member)]));
}

/** Keys of a user under which others would act than the file says, were they ignored. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  "auth-provider": "use a credential plugin (exec), a token or a client certificate",
  as: "give the rights to the user itself",
  "as-uid": "give the rights to the user itself",
  "as-groups": "give the rights to the user itself",
  "as-user-extra": "give the rights to the user itself",
};

const TEXTS = ["token", "tokenFile", "username", "password"];

/** Throws CloudConfigError for a way to log in that is not supported: without it, requests would go out with other rights. */
function refuseUnsupported(user: object, name: string): void {
  for (const [key, value] of Object.entries(user))
    if (TEXTS.includes(key) && typeof value !== "string")
      throw new CloudConfigError(
        `${key} of user ${name} of the kubeconfig must be text; put quotes around it`,
      );
  for (const [key, remedy] of Object.entries(UNSUPPORTED))
    if (Object.hasOwn(user, key))
      throw new CloudConfigError(
        `user ${name} of the kubeconfig has ${key}, which Nodeyard does not support; ${remedy}`,
      );
}

/** The first file that has the name counts, as in kubectl. */
function find<L extends "contexts" | "clusters" | "users", K extends string>(
  configs: ReturnType<typeof readConfigs>,
  list: L,
  key: K,
  name: string,
) {
  type Value = NonNullable<NonNullable<KubeConfig[L]>[number][K & keyof NonNullable<KubeConfig[L]>[number]]>;
  for (const { config, folder } of configs)
    for (const entry of config[list] ?? [])
      if (entry.name === name)
        return { ...((entry as Readonly<Record<string, unknown>>)[key] as Value), folder } as Found<Value>;
  const known = configs.flatMap(({ config }) => (config[list] ?? []).map((entry) => entry.name));
  throw new CloudConfigError(`the kubeconfig has no ${key} ${name}; it has ${known.join(", ") || "none"}`);
}

/** Reads all files and runs the plugin of a context. Throws CloudConfigError, or the signal's reason. */
async function accessOf(
  cluster: Found<Cluster>,
  user: Found<User>,
  files: KubeFiles,
  signal: AbortSignal,
): Promise<Access> {
  if (cluster.server === undefined) throw new CloudConfigError("the cluster of the kubeconfig has no server");
  const server = cluster.server.replace(/\/+$/, "");
  const ca = pem(cluster, "certificate-authority", files);
  const plugin = user.exec === undefined ? undefined : await pluginStatus(user, cluster, ca, files, signal);
  const route: Route = {
    verify: cluster["insecure-skip-tls-verify"] !== true,
    ca,
    cert: plugin?.clientCertificateData ?? pem(user, "client-certificate", files),
    key: plugin?.clientKeyData ?? pem(user, "client-key", files),
    serverName: cluster["tls-server-name"] ?? null,
    // As in kubectl, a cluster's proxy takes precedence over that of the environment.
    proxy: cluster["proxy-url"] ?? files.proxy(server),
  };
  const expires = plugin?.expirationTimestamp === undefined ? null : Date.parse(plugin.expirationTimestamp);
  return { server, route, authorization: authorizationOf(user, plugin?.token, files), expires };
}

/** Value of the header; null when only a certificate authenticates, or nothing does. */
function authorizationOf(user: Found<User>, fromPlugin: string | undefined, files: KubeFiles): string | null {
  const token =
    fromPlugin ?? (user.tokenFile === undefined ? user.token : needed(user.folder, user.tokenFile, files));
  if (token !== undefined) return `Bearer ${token.trim()}`;
  if (user.username === undefined) return null;
  return `Basic ${Buffer.from(`${user.username}:${user.password ?? ""}`).toString("base64")}`;
}

function inCluster(files: KubeFiles, host: string, port: string): Access {
  // The variable has an IPv6 address without brackets.
  const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const ca = needed("", `${IN_CLUSTER}/ca.crt`, files);
  const route: Route = {
    verify: true,
    ca,
    cert: null,
    key: null,
    serverName: null,
    proxy: files.proxy(server),
  };
  const token = needed("", `${IN_CLUSTER}/token`, files).trim();
  return { server, route, authorization: `Bearer ${token}`, expires: null };
}

/** PEM text of `key`-data (base64), which takes precedence, or of the file that `key` names. */
function pem(
  from: Found<Cluster | User>,
  key: "certificate-authority" | "client-certificate" | "client-key",
  files: KubeFiles,
): string | null {
  const values = from as object as Readonly<Record<string, string | undefined>>;
  const data = values[`${key}-data`];
  if (data !== undefined && data !== "") return Buffer.from(data, "base64").toString("utf8");
  const path = values[key];
  return path === undefined || path === "" ? null : needed(from.folder, path, files);
}

/** A file that must exist. Throws CloudConfigError with its path. */
function needed(folder: string, path: string, files: KubeFiles): string {
  const whole = path.startsWith("/") ? path : `${folder}${path}`;
  const text = files.read(whole);
  if (text === undefined) throw new CloudConfigError(`there is no file ${whole}, which the kubeconfig needs`);
  return text;
}

/**
 * `status` of an ExecCredential (https://kubernetes.io/docs/reference/config-api/client-authentication.v1/).
 * `expirationTimestamp`: RFC 3339.
 */
interface PluginStatus {
  readonly token?: string;
  readonly clientCertificateData?: string;
  readonly clientKeyData?: string;
  readonly expirationTimestamp?: string;
}

/**
 * Runs the credential plugin, which gets its request in KUBERNETES_EXEC_INFO. Called for each reading; `Connection` keeps the
 * result until shortly before it expires.
 */
async function pluginStatus(
  { exec, folder }: Found<User>,
  cluster: Cluster,
  ca: string | null,
  files: KubeFiles,
  signal: AbortSignal,
): Promise<PluginStatus> {
  const { command = "", args, env, provideClusterInfo, installHint = "" } = exec!;
  const apiVersion = exec!.apiVersion ?? "client.authentication.k8s.io/v1";
  const info = {
    server: cluster.server,
    ...(ca === null ? {} : { "certificate-authority-data": Buffer.from(ca).toString("base64") }),
  };
  // A launcher has no terminal, so a plugin that would ask for a password has to fail instead.
  const spec = { interactive: false, ...(provideClusterInfo === true ? { cluster: info } : {}) };
  const execInfo = JSON.stringify({ apiVersion, kind: "ExecCredential", spec });
  const own = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
  const program = command.includes("/") && !command.startsWith("/") ? `${folder}${command}` : command;
  const call = { command: program, args: args ?? [], env: { ...own, KUBERNETES_EXEC_INFO: execInfo } };
  try {
    const { status } = JSON.parse(await files.run(call, signal)) as { readonly status?: PluginStatus };
    if (status?.token === undefined && status?.clientCertificateData === undefined)
      throw new CloudConfigError("its answer has neither a token nor a certificate");
    return status;
  } catch (error) {
    signal.throwIfAborted();
    // The output of the plugin is not quoted, since it may contain the token.
    const why = error instanceof SyntaxError ? "its answer is not JSON" : messageOf(error);
    const hint = why === "ENOENT" ? `it is not installed. ${installHint}`.trim() : why;
    throw new CloudConfigError(`the credential plugin ${command} failed: ${hint}`, { cause: error });
  }
}
