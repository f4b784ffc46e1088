import { type Around, CloudConfigError, neededText, parseCloudFile } from "@nodeyard/driver";
import type { TlsOptions } from "@nodeyard/driver/http";
import { messageOf } from "@nodeyard/runtime";
import { z } from "zod";

/** What credentials are read from: KUBECONFIG or the KUBERNETES_SERVICE_* variables of a pod, and files, each time: they are replaced in place. */
export interface KubeFiles extends Around {
  /** Folder of `.kube/config`. */
  readonly home: string;
  /** The proxy that the environment names for a server; null: none. */
  proxy(server: string): string | null;
  /** Runs a credential plugin and returns its output. */
  run(command: PluginCommand, signal: AbortSignal): Promise<string>;
}

/** A credential plugin (https://kubernetes.io/docs/reference/access-authn-authz/authentication/, "client-go credential plugins"). */
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

/** Tokens, passwords and names may be written without quotes; of the keys that are read, none is a number. */
const NAME = z.union([z.string(), z.number().transform(String)], {
  error: "must be text; put quotes around it",
});
const TEXT = NAME.nullish().transform((text) => text || undefined);
const BASE64 = TEXT.transform((text) => text && Buffer.from(text, "base64").toString());
const GIVE = "give the rights to the user itself";
/** Keys of a user under which others would act than the file says, were they ignored; and what to do instead. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  "auth-provider": "use a credential plugin (exec), a token or a client certificate",
  ...{ as: GIVE, "as-uid": GIVE, "as-groups": GIVE, "as-user-extra": GIVE },
};

/** Keys and meaning: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/ */
const CONTEXT = z.object({ cluster: TEXT, user: TEXT });
const CLUSTER = z.object({
  ...{ server: TEXT, "tls-server-name": TEXT, "proxy-url": TEXT },
  ...{ "certificate-authority": TEXT, "certificate-authority-data": BASE64 },
  "insecure-skip-tls-verify": z.boolean().nullish(),
});
/** A plugin's credential counts before a token file, a token, and user name with password. A client certificate is sent with any of them. */
const USER = z.object({
  ...{ token: TEXT, tokenFile: TEXT, username: TEXT, password: TEXT },
  ...{ "client-certificate": TEXT, "client-certificate-data": BASE64 },
  ...{ "client-key": TEXT, "client-key-data": BASE64 },
  exec: z
    .object({
      ...{ apiVersion: TEXT, command: TEXT, installHint: TEXT },
      args: z.array(NAME).nullish(),
      env: z.array(z.object({ name: NAME, value: NAME })).nullish(),
      provideClusterInfo: z.boolean().nullish(),
    })
    .nullish(),
});
/** What the entries hold is read where one is chosen. */
const ENTRIES = z.array(z.looseObject({ name: NAME })).nullish();
const FILE = z.object(
  { "current-context": TEXT, contexts: ENTRIES, clusters: ENTRIES, users: ENTRIES },
  { error: "it is no mapping" },
);
/** An ExecCredential (https://kubernetes.io/docs/reference/config-api/client-authentication.v1/). `expirationTimestamp`: RFC 3339. */
const CREDENTIAL = z.object({
  status: z
    .object({ token: TEXT, clientCertificateData: TEXT, clientKeyData: TEXT, expirationTimestamp: TEXT })
    .refine((status) => status.token ?? status.clientCertificateData, {
      error: "its answer has neither a token nor a certificate",
    }),
});

/** An entry of a file: relative paths in it start at the file's folder, which ends in a slash. */
type Entry<S extends z.ZodType> = Partial<z.infer<S>> & { readonly folder: string };

/** The whole path of one in a file of this folder. */
const at = (path: string, folder: string) => (path.startsWith("/") ? path : `${folder}${path}`);

/** Folder in which the kubelet mounts the credentials of a pod's service account. */
const IN_CLUSTER = "/var/run/secrets/kubernetes.io/serviceaccount/";

/** The access of a context; null: of `current-context`, or of the pod that this process runs in. Rejects with CloudConfigError. */
export async function resolveAccess(
  context: string | null,
  files: KubeFiles,
  signal: AbortSignal,
): Promise<Access> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443", KUBECONFIG } = files.env;
  const configs = readConfigs(files);
  if (configs.length === 0 && host !== undefined && context === null) {
    // The variable has an IPv6 address without brackets.
    const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
    const cluster = { server, "certificate-authority": "ca.crt", folder: IN_CLUSTER };
    return accessOf(cluster, { tokenFile: "token", folder: IN_CLUSTER }, files, signal);
  }
  if (configs.length === 0)
    throw new CloudConfigError(
      `there is no kubeconfig ${KUBECONFIG || "~/.kube/config"}, and this is no pod of a cluster; write it, or name another in KUBECONFIG`,
    );
  const wanted = context ?? configs.map((config) => config["current-context"]).find(Boolean);
  if (wanted === undefined)
    throw new CloudConfigError("the kubeconfig has no current-context; set `context` of the provider");
  const { cluster = "", user } = find(configs, "context", wanted, CONTEXT);
  const as = user === undefined ? { folder: "" } : find(configs, "user", user, USER);
  return accessOf(find(configs, "cluster", cluster, CLUSTER), as, files, signal);
}

function readConfigs({ env, home, read }: KubeFiles) {
  // KUBECONFIG may name several files. One that does not exist is skipped, as in kubectl.
  const paths = (env.KUBECONFIG ?? "").split(":").filter((path) => path !== "");
  return (paths.length > 0 ? paths : [`${home}/.kube/config`]).flatMap((path) => {
    try {
      const config = parseCloudFile(read(path) ?? "");
      return config === null ? [] : { ...FILE.parse(config), folder: path.replace(/[^/]*$/, "") };
    } catch (error) {
      throw new CloudConfigError(`${path} cannot be read: ${said(error)}`, { cause: error });
    }
  });
}

/** The first file that has the name counts, as in kubectl. */
function find<S extends z.ZodType<object>>(
  configs: ReturnType<typeof readConfigs>,
  kind: "context" | "cluster" | "user",
  name: string,
  schema: S,
): Entry<S> {
  const all = configs.flatMap(({ folder, [`${kind}s` as const]: entries }) =>
    (entries ?? []).map((entry) => ({ name: entry.name, value: Object(entry[kind]), folder })),
  );
  const known = all.map((entry) => entry.name).join(", ") || "none";
  const found = all.find((entry) => entry.name === name);
  if (found === undefined)
    throw new CloudConfigError(`the kubeconfig has no ${kind} ${name}; it has ${known}`);
  const { value, folder } = found;
  const of = `${kind} ${name} of the kubeconfig`;
  const refused = kind === "user" && Object.keys(UNSUPPORTED).find((key) => key in value);
  if (refused)
    throw new CloudConfigError(
      `${of} has ${refused}, which Nodeyard does not support; ${UNSUPPORTED[refused]}`,
    );
  const { data, error } = schema.safeParse(value);
  if (data !== undefined) return { ...data, folder };
  throw new CloudConfigError(`${error!.issues[0]!.path.join(".")} of ${of} ${said(error)}`, { cause: error });
}

/** What is wrong first. */
function said(error: unknown): string {
  return error instanceof z.ZodError ? error.issues[0]!.message : messageOf(error);
}

/** Reads all files and runs the plugin of a context. */
async function accessOf(
  cluster: Entry<typeof CLUSTER>,
  user: Entry<typeof USER>,
  files: KubeFiles,
  signal: AbortSignal,
): Promise<Access> {
  const textOf = (path: string, { folder }: Entry<z.ZodType>) => neededText(at(path, folder), files.read);
  /** PEM text of data, which take precedence, or of a file. */
  const pem = (entry: Entry<z.ZodType>, data: string | undefined, path: string | undefined) =>
    data ?? (path === undefined ? null : textOf(path, entry));
  if (cluster.server === undefined) throw new CloudConfigError("the cluster of the kubeconfig has no server");
  const server = cluster.server.replace(/\/+$/, "");
  const ca = pem(cluster, cluster["certificate-authority-data"], cluster["certificate-authority"]);
  const plugin = await pluginStatus(user, server, ca, files, signal);
  const { tokenFile, username, password = "", "client-certificate": cert, "client-key": key } = user;
  const token = plugin?.token ?? (tokenFile === undefined ? user.token : textOf(tokenFile, user));
  const basic = Buffer.from(`${username}:${password}`).toString("base64");
  const expires = plugin?.expirationTimestamp;
  return {
    server,
    route: {
      verify: cluster["insecure-skip-tls-verify"] !== true,
      ca,
      cert: plugin?.clientCertificateData ?? pem(user, user["client-certificate-data"], cert),
      key: plugin?.clientKeyData ?? pem(user, user["client-key-data"], key),
      serverName: cluster["tls-server-name"] ?? null,
      // As in kubectl, a cluster's proxy takes precedence over that of the environment.
      proxy: cluster["proxy-url"] ?? files.proxy(server),
    },
    authorization: token ? `Bearer ${token.trim()}` : username ? `Basic ${basic}` : null,
    expires: expires === undefined ? null : Date.parse(expires),
  };
}

/** Runs the credential plugin, if there is one, with its request in KUBERNETES_EXEC_INFO. */
async function pluginStatus(
  { exec, folder }: Entry<typeof USER>,
  server: string,
  ca: string | null,
  files: KubeFiles,
  signal: AbortSignal,
) {
  if (!exec) return undefined;
  const { apiVersion = "client.authentication.k8s.io/v1", command = "", installHint = "" } = exec;
  const cluster = {
    server,
    ...(ca !== null && { "certificate-authority-data": Buffer.from(ca).toString("base64") }),
  };
  // A launcher has no terminal, so a plugin that would ask for a password has to fail instead.
  const spec = { interactive: false, ...(exec.provideClusterInfo && { cluster }) };
  const own = (exec.env ?? []).map(({ name, value }) => [name, value]);
  const call = {
    command: command.includes("/") ? at(command, folder) : command,
    args: exec.args ?? [],
    env: {
      ...Object.fromEntries(own),
      KUBERNETES_EXEC_INFO: JSON.stringify({ apiVersion, kind: "ExecCredential", spec }),
    },
  };
  try {
    return CREDENTIAL.parse(JSON.parse(await files.run(call, signal))).status;
  } catch (error) {
    signal.throwIfAborted();
    // The output of the plugin is not quoted, since it may contain the token.
    const why = error instanceof SyntaxError ? "its answer is not JSON" : said(error);
    const hint = why === "ENOENT" ? `it is not installed. ${installHint}`.trim() : why;
    throw new CloudConfigError(`the credential plugin ${command} failed: ${hint}`, { cause: error });
  }
}
