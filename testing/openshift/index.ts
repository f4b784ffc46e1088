import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Agent, request } from "undici";
import type { KubernetesSite, User } from "../kubernetes/site.ts";

const PROJECTS = /^\/apis\/project\.openshift\.io\/v1\/projects(?=[/?]|$)/;
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const REQUESTS = /^\/apis\/project\.openshift\.io\/v1\/projectrequests$/;

/** A project API in front of a cluster. */
export interface Openshift {
  readonly server: string;
  /** A kubeconfig of one user, with the context `test`. */
  kubeconfig(user: User): string;
  stop(): Promise<void>;
}

/**
 * The `project.openshift.io` group in front of a real API server, which answers everything else: OpenShift's own server cannot be built
 * from Go modules. As there, a project is a namespace; a request makes one with display name, description and requester as annotations,
 * takes no labels along, and makes its requester administrator, who may change and delete the project itself; who asks sees projects by what the credential may do with namespaces. Lists
 * have no version, and watches no bookmarks; the end of a project is told by its name alone (openshift-apiserver, `pkg/project/auth`).
 */
export async function startOpenshift(site: KubernetesSite): Promise<Openshift> {
  const at = (name: string) => join(site.folder, name);
  const words =
    "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=openshift -addext subjectAltName=IP:127.0.0.1";
  execFileSync(
    "openssl",
    [...words.split(" "), "-keyout", at("openshift.key"), "-out", at("openshift.crt")],
    {
      stdio: "ignore",
    },
  );
  const ca = readFileSync(at("openshift.crt"), "utf8");
  // What OpenShift's own role `admin` says of projects, which are namespaces here.
  await site.call("POST", `${RBAC}/clusterroles`, "admin-token", {
    metadata: {
      name: "project-owner",
      labels: { "rbac.authorization.k8s.io/aggregate-to-admin": "true" },
    },
    rules: [{ apiGroups: [""], resources: ["namespaces"], verbs: ["get", "patch", "update", "delete"] }],
  });
  const behind = new Agent({ connect: { ca: site.ca }, allowH2: false });
  const server: Server = createServer(
    { key: readFileSync(at("openshift.key")), cert: ca },
    async (asked, reply) => {
      const gone = new AbortController();
      reply.once("close", () => gone.abort());
      try {
        let body = await text(asked);
        let path = asked.url!.replace(PROJECTS, "/api/v1/namespaces");
        const { authorization = "" } = asked.headers;
        const requester = authorization.replace(/^Bearer (.*)-token$/, "$1");
        const isRequest = asked.method === "POST" && REQUESTS.test(path);
        if (isRequest) {
          const { metadata, displayName = "", description = "" } = JSON.parse(body);
          const annotations = {
            "openshift.io/display-name": displayName,
            "openshift.io/description": description,
            "openshift.io/requester": requester,
          };
          path = "/api/v1/namespaces";
          body = JSON.stringify({ metadata: { name: metadata.name, annotations } });
        }
        const answer = await request(`${site.server}${path}`, {
          dispatcher: behind,
          method: asked.method as "GET",
          headers: { authorization, ...(body === "" ? {} : { "content-type": "application/json" }) },
          signal: gone.signal,
          ...(body === "" ? {} : { body }),
        });
        if (isRequest && answer.statusCode === 201)
          await makeAdministrator(site, JSON.parse(body).metadata.name, requester);
        reply.writeHead(answer.statusCode, { "content-type": "application/json" });
        const isOfAll = asked.method === "GET" && /^\/apis\/project[^?]*\/projects(\?|$)/.test(asked.url!);
        if (!isOfAll) for await (const chunk of answer.body) reply.write(chunk);
        else if (/[?&]watch=/.test(asked.url!))
          for await (const line of events(answer.body)) reply.write(line);
        else reply.write(withoutVersion(await text(answer.body)));
        reply.end();
      } catch (error) {
        if (!reply.headersSent) reply.writeHead(503);
        reply.end(JSON.stringify({ kind: "Status", message: String(error), code: 503 }));
      }
    },
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const address = `https://127.0.0.1:${port}`;
  return {
    server: address,
    kubeconfig(user) {
      const cluster = { server: address, "certificate-authority-data": Buffer.from(ca).toString("base64") };
      const config = { ...JSON.parse(site.configFor(`${user}-token`)), clusters: [{ name: "c", cluster }] };
      const path = at(`openshift-${user}.kubeconfig`);
      writeFileSync(path, JSON.stringify(config));
      return path;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await behind.destroy();
    },
  };
}

async function makeAdministrator(site: KubernetesSite, project: string, name: string): Promise<void> {
  await site.api("POST", `${RBAC}/namespaces/${project}/rolebindings`, {
    metadata: { name: "admin" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "admin" },
    subjects: [{ kind: "User", name }],
  });
}

function withoutVersion(list: string): string {
  const parsed = JSON.parse(list);
  return JSON.stringify(parsed.kind === "NamespaceList" ? { ...parsed, metadata: {} } : parsed);
}

async function* events(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      const { type, object } = JSON.parse(line);
      if (type === "BOOKMARK") continue;
      const told = type === "DELETED" ? { metadata: { name: object.metadata.name } } : object;
      yield `${JSON.stringify({ type, object: told })}\n`;
    }
  }
}

async function text(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
