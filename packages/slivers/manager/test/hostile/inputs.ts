import { generateKeyPairSync, sign } from "node:crypto";
import { RESOURCES, type SliverSpecInput } from "@nodeyard/sliver-protocol";
import type { ApiRig } from "../api/rig.ts";
import { signerOf, spec } from "../api/rig.ts";

/** One hostile input of a sliver: bytes, or the body of a call at a path. */
export interface Input {
  readonly what: string;
  readonly send: (
    rig: ApiRig,
  ) =>
    | { readonly raw: string | Buffer; readonly isCut?: true }
    | { readonly path: string; readonly body: string | Buffer };
  /** HTTP status; 0: the connection ends. Or the fault that is answered. */
  readonly refused: number | RegExp;
}

const DENIED = /108/;
const http = (lines: readonly string[], body = ""): { raw: string } => ({
  raw: `${["POST /json HTTP/1.1", "host: x", ...lines].join("\r\n")}\r\n\r\n${body}`,
});
const raw = (what: string, text: string | Buffer, refused: number): Input => ({
  what,
  send: () => ({ raw: text }),
  refused,
});
const head = (what: string, lines: readonly string[], refused: number, body = ""): Input => ({
  what,
  send: () => http(["connection: close", ...lines], body),
  refused,
});

const HTTP: readonly Input[] = [
  raw("bytes that are no HTTP", Buffer.from([0, 1, 2, 255, 13, 10, 13, 10]), 400),
  raw("HTTP 0.9", "GET /json\r\n\r\n", 400),
  raw("another version of HTTP", "POST /json HTTP/3.1\r\nhost: x\r\n\r\n", 400),
  raw("an unknown verb", "BREW /json HTTP/1.1\r\nhost: x\r\n\r\n", 400),
  raw("lines without CR", "POST /json HTTP/1.1\nhost: x\n\n", 400),
  raw("no host", "POST /json HTTP/1.1\r\nconnection: close\r\n\r\n", 400),
  raw("a TLS greeting", Buffer.from("16030100a5010000a1030300", "hex"), 400),
  raw("HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
  raw("another verb", "GET /json HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 405),
  raw("a tunnel", "CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: x\r\n\r\n", 0),
  raw(
    "a URL of another host",
    "POST http://169.254.169.254/json HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    404,
  ),
  raw("a path that goes up", "POST /json/../root HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 404),
  raw("an encoded path", "POST /%6ason HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 404),
  raw("a path of a prototype", "POST /__proto__ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 404),
  raw("a path of 60,000 characters", `POST /${"a".repeat(60_000)} HTTP/1.1\r\nhost: x\r\n\r\n`, 400),
  head("two lengths", ["content-length: 2", "content-length: 30"], 400),
  head("a length and chunks", ["content-length: 2", "transfer-encoding: chunked"], 400),
  head("chunks", ["transfer-encoding: chunked"], 411, "ffffffffffffffff\r\n"),
  head("chunks under a disguise", ["transfer-encoding: xchunked"], 400),
  head("chunks twice", ["transfer-encoding: chunked, chunked"], 400),
  head("chunks of a negative size", ["transfer-encoding: chunked"], 400, "-1\r\n"),
  head("a negative length", ["content-length: -1"], 400),
  head("a hexadecimal length", ["content-length: 0x10"], 400),
  head("a length beyond 64 bits", ["content-length: 99999999999999999999"], 400),
  head("a length above what slivers may send", ["content-length: 131073"], 413),
  head("a header with a space in its name", ["x-a : b"], 400),
  head("a folded header", ["x-a: b", " c"], 400),
  head("NUL in a header", ["x-a: b\0c"], 400),
  head("headers of 20 KiB", [`x-a: ${"a".repeat(20_000)}`], 400),
  head(
    "5,000 headers",
    Array.from({ length: 5_000 }, (_, at) => `x-${at}: 1`),
    400,
  ),
  head("an expectation that nobody has", ["expect: riches"], 0),
  head("an upgrade", ["connection: upgrade", "upgrade: websocket", "content-length: 0"], 200),
  {
    what: "a second request in the body of the first, which says that it is root's",
    send: () => {
      const body = '{"method":"Status","params":[]}';
      const inner = `POST /json HTTP/1.1\r\nhost: x\r\nx-account: root\r\nauthorization: Bearer a-token-of-root\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
      return { raw: `POST /nothing HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n${inner}` };
    },
    refused: DENIED,
  },
  {
    what: "a body that ends early",
    send: () => ({
      raw: Buffer.from('POST /json HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n{"method":'),
      isCut: true,
    }),
    refused: 400,
  },
];

const xml = (what: string, body: string | Buffer, refused: RegExp | number = /XmlRpcError/): Input => ({
  what: `XML: ${what}`,
  send: () => ({ path: "/v2", body }),
  refused,
});
const value = (what: string, inner: string): Input =>
  xml(
    what,
    `<methodCall><methodName>SetLoans</methodName><params><param><value>ada</value></param><param><value>${inner}</value></param></params></methodCall>`,
  );
const named = (what: string, name: string, refused?: RegExp): Input =>
  xml(what, `<methodCall><methodName>${name}</methodName><params/></methodCall>`, refused);
const nested = (levels: number) =>
  `${"<array><data><value>".repeat(levels)}${"</value></data></array>".repeat(levels)}`;
const LAUGHS = `<!DOCTYPE l [<!ENTITY a "ha">${Array.from({ length: 9 }, (_, at) => `<!ENTITY ${"abcdefghij"[at + 1]} "${`&${"abcdefghij"[at]};`.repeat(10)}">`).join("")}]>`;

const XML: readonly Input[] = [
  xml("none", ""),
  xml("text", "Help"),
  xml("cut off", "<methodCall><methodName>Help</methodName>"),
  xml("two roots", "<methodCall/><methodCall/>"),
  xml("text behind the root", "<methodCall/>x"),
  xml("entities that grow", `${LAUGHS}<methodCall><methodName>&j;</methodName></methodCall>`),
  xml(
    "an entity that is a file",
    '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/shadow">]><methodCall><methodName>&e;</methodName></methodCall>',
  ),
  xml("a document type elsewhere", '<!DOCTYPE x SYSTEM "http://127.0.0.1/x"><methodCall/>'),
  xml("a processing instruction", "<?php system('id') ?><methodCall/>"),
  xml("NUL", "<methodCall><methodName>He\0lp</methodName></methodCall>"),
  xml(
    "invalid UTF-8",
    Buffer.concat([
      Buffer.from("<methodCall><methodName>Hel"),
      Buffer.from([0xff, 0xfe]),
      Buffer.from("p</methodName></methodCall>"),
    ]),
  ),
  xml("UTF-16", Buffer.from("<methodCall><methodName>Help</methodName></methodCall>", "utf16le")),
  xml("another root", "<methodResponse/>"),
  xml("no method", "<methodCall><params/></methodCall>"),
  xml("two methods", "<methodCall><methodName>Help</methodName><methodName>Status</methodName></methodCall>"),
  xml("10,000 levels", "<a>".repeat(10_000)),
  named("a method that is a path", "../../etc/passwd", /XmlRpcError|Invalid API method/),
  named("a method with a space", "Help me"),
  named("a method of 200 characters", "a".repeat(200)),
  named("a method of markup", "&lt;b&gt;"),
  value("an unknown entity", "&nbsp;"),
  value("an attribute", "<string a='1'>x</string>"),
  value("an integer beyond 32 bits", "<int>2147483648</int>"),
  value("a fraction as an integer", "<int>1.5</int>"),
  value("no digits", "<int></int>"),
  value("a truth that is none", "<boolean>yes</boolean>"),
  value("a hexadecimal double", "<double>0x10</double>"),
  value("an integer of 64 bits", "<i8>1</i8>"),
  value("base64 that is none", "<base64>@@@@</base64>"),
  value("a time that is none", "<dateTime.iso8601>now</dateTime.iso8601>"),
  value("a type of a prototype", "<constructor>1</constructor>"),
  value("two values in one", "<int>1</int><int>2</int>"),
  value(
    "a member twice",
    "<struct><member><name>a</name><value/></member><member><name>a</name><value/></member></struct>",
  ),
  value("a member without a value", "<struct><member><name>a</name></member></struct>"),
  value("33 levels", nested(33)),
];

const json = (
  what: string,
  body: string | Buffer,
  refused: RegExp | number = /valid JSON|a call is/,
): Input => ({
  what: `JSON: ${what}`,
  send: () => ({ path: "/json", body }),
  refused,
});
const call = (what: string, method: string, params: readonly unknown[], refused: RegExp): Input =>
  json(what, JSON.stringify({ method, params }), refused);

const JSON_BODIES: readonly Input[] = [
  json("none", ""),
  json("cut off", '{"method":'),
  json("null", "null"),
  json("a list", "[]"),
  json("a number", "1e999"),
  json("a method that is a number", '{"method":1,"params":[]}'),
  json("arguments that are no list", '{"method":"Help","params":{"length":0}}'),
  json("a method twice", '{"method":"Help","method":"Status","params":[]}', DENIED),
  json("100 levels", `{"method":"SetLoans","params":["ada",${"[".repeat(100)}${"]".repeat(100)}]}`, /nested/),
  json(
    "60,000 levels",
    `{"method":"SetLoans","params":["ada",${"[".repeat(60_000)}${"]".repeat(60_000)}]}`,
    /nested/,
  ),
  json(
    "invalid UTF-8",
    Buffer.concat([Buffer.from('{"method":"Hel'), Buffer.from([0xc0, 0xaf]), Buffer.from('p","params":[]}')]),
    /100/,
  ),
  json("a byte order mark", '\ufeff{"method":"Help","params":[]}'),
  json("comments", '{"method":"Help","params":[]} // please'),
];

const CALLS: readonly Input[] = [
  call("an unknown method", "Reboot", [], /100/),
  ...["constructor", "__proto__", "toString", "hasOwnProperty"].map((name) =>
    call(`a method ${name}`, name, [], /100/),
  ),
  call("a method of 100,000 characters", "a".repeat(100_000), [], /100/),
  call("too many arguments", "Help", [1], /101/),
  call("no arguments", "SetLoans", [], /101/),
  ...["Deliver", "RotateKeys", "AdminTicket"].map((name) => call(`${name} by a sliver`, name, ["x"], DENIED)),
  ...["Status", "GetDocument", "GetXIDs", "GetSSHKeys"].map((name) =>
    call(`${name} by a sliver`, name, [], DENIED),
  ),
  call("Watch by a sliver", "Watch", [0], DENIED),
  ...["Stop", "Destroy", "ReCreate", "GetLoans", "GetRSpec"].map((name) =>
    call(`${name} of another's sliver`, name, ["bob"], DENIED),
  ),
  ...[
    "../bob",
    "/etc/passwd",
    "ada\n",
    "ada\0",
    "ada ",
    "ADA",
    "аda",
    "a".repeat(100_000),
    "",
    "__proto__",
    "root",
    "bob\u202e",
  ].map((name) => call(`a sliver ${JSON.stringify(name.slice(0, 12))}`, "Stop", [name], DENIED)),
  ...[null, 1, true, ["ada"], { toString: "ada" }].map((name) =>
    call(`a sliver ${JSON.stringify(name)}`, "Stop", [name], DENIED),
  ),
];

const loan = (more: object) => ({ to: "bob", resource: "cpuShare", amount: 1, ...more });
const loans = (what: string, list: unknown): Input =>
  call(`loans: ${what}`, "SetLoans", ["ada", list], /102/);

const LOANS: readonly Input[] = [
  loans("no list", "x"),
  loans("a list of nothing", [null]),
  ...[-1, 0.5, 2 ** 53, 1e300, "1", true, null, [1]].map((amount) =>
    loans(`an amount of ${JSON.stringify(amount)}`, [loan({ amount })]),
  ),
  ...["disk", "memoryCap", "constructor", "cpu_share", "", 1].map((resource) =>
    loans(`of ${JSON.stringify(resource)}`, [loan({ resource })]),
  ),
  ...["root", "control", "policy", "../bob", "bob\n", "b".repeat(33), "__proto__", 7].map((to) =>
    loans(`to ${JSON.stringify(to).slice(0, 20)}`, [loan({ to })]),
  ),
  ...[-1, "tomorrow", 1.5].map((until) => loans(`until ${JSON.stringify(until)}`, [loan({ until })])),
  loans("to a generation that is none", [loan({ generation: -1 })]),
  loans("33 of them", Array(33).fill(loan({}))),
  loans("1,001 of them", Array(1_001).fill(loan({ amount: 0 }))),
];

const ticket = (what: string, make: (rig: ApiRig) => unknown, refused: RegExp = /102/): Input => ({
  what: `a ticket ${what}`,
  send: (rig) => ({ path: "/json", body: JSON.stringify({ method: "Ticket", params: [make(rig)] }) }),
  refused,
});
const seconds = (rig: ApiRig) => Math.floor(rig.clock.now() / 1000);
/** A ticket whose header was replaced; signed with the node's own key all the same. */
const reheaded = (rig: ApiRig, header: object): string => {
  const payload = rig.ticket(spec("laz")).split(".")[1]!;
  const text = `${Buffer.from(JSON.stringify(header)).toString("base64url")}.${payload}`;
  return `${text}.${sign(null, Buffer.from(text), rig.signer.privateKey).toString("base64url")}`;
};
const jti = (at: number) => `hostile-${String(at).padStart(12, "0")}`;
let made = 0;
const wishes = (what: string, more: Readonly<Record<string, unknown>>): Input =>
  ticket(`for a sliver with ${what}`, (rig) =>
    rig.ticket({ ...spec("laz", { instantiation: "delegated" }), ...more } as SliverSpecInput, {
      jti: jti(++made),
    }),
  );

const ED = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
const OUT_OF_BOUNDS = [-1, 1_000_000_000_001, 0.5, "1", null, true, [1], 1e300];

const TICKETS: readonly Input[] = [
  ticket("that is a number", () => 7),
  ticket("without a signature", () => "<methodResponse/>"),
  ticket("of two parts", (rig) => rig.ticket(spec("laz")).split(".").slice(0, 2).join(".")),
  ticket("with a signature of zeros", (rig) =>
    rig.ticket(spec("laz")).replace(/[^.]+$/, Buffer.alloc(64).toString("base64url")),
  ),
  ticket("by another key of the same name", (rig) => rig.ticket(spec("laz"), {}, signerOf("k1"))),
  ticket("by a key that nobody knows", (rig) => rig.ticket(spec("laz"), {}, signerOf("k9"))),
  ticket("whose content was changed", (rig) => {
    const [header, payload, signature] = rig.ticket(spec("laz")).split(".") as [string, string, string];
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as object;
    return [
      header,
      Buffer.from(JSON.stringify({ ...claims, jti: jti(0) })).toString("base64url"),
      signature,
    ].join(".");
  }),
  ...["none", "HS256", "ES256", "eddsa"].map((alg) =>
    ticket(`of algorithm ${alg}`, (rig) => reheaded(rig, { alg, typ: "nodeyard-ticket", kid: "k1" })),
  ),
  ticket("with a key of its own", (rig) =>
    reheaded(rig, {
      alg: "EdDSA",
      typ: "nodeyard-ticket",
      kid: 1,
      jwk: generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }),
    }),
  ),
  ticket("with extensions that must be understood", (rig) => {
    const header = JSON.parse(
      Buffer.from(rig.ticket(spec("laz")).split(".")[0]!, "base64url").toString(),
    ) as object;
    return reheaded(rig, { ...header, crit: ["b64"], b64: false });
  }),
  ticket("that is a document", (rig) => rig.document([spec("laz")])),
  ticket("for another node", (rig) => rig.ticket(spec("laz"), { aud: "node-2" })),
  ticket("that has expired", (rig) =>
    rig.ticket(spec("laz"), { nbf: seconds(rig) - 400, exp: seconds(rig) - 100 }),
  ),
  ticket("that is not valid yet", (rig) =>
    rig.ticket(spec("laz"), { nbf: seconds(rig) + 100, exp: seconds(rig) + 200 }),
  ),
  ticket("that is valid for a day", (rig) => rig.ticket(spec("laz"), { exp: seconds(rig) + 86_400 })),
  ticket("that ends before it begins", (rig) => rig.ticket(spec("laz"), { exp: seconds(rig) - 1 })),
  ticket("with times that are none", (rig) => rig.ticket(spec("laz"), { exp: "never" })),
  ticket("with an id that is short", (rig) => rig.ticket(spec("laz"), { jti: "x" })),
  ticket("of an epoch that has ended", (rig) => rig.ticket(spec("laz"), { epoch: 0, jti: jti(++made) })),
  ticket("older than the document", (rig) => rig.ticket(spec("laz"), { version: 0, jti: jti(++made) })),
  ticket("with words that nobody knows", (rig) => rig.ticket(spec("laz"), { root: true, jti: jti(++made) })),
  ...[
    "root",
    "control",
    "policy",
    "../x",
    "a b",
    "-rf",
    "Laz",
    "laz\n",
    "laz\0",
    "l".repeat(33),
    "",
    "laz;id",
    "$(id)",
    7,
  ].map((name) => wishes(`the name ${JSON.stringify(name).slice(0, 16)}`, { name })),
  ...RESOURCES.map((resource, at) => {
    const amount = OUT_OF_BOUNDS[at % OUT_OF_BOUNDS.length];
    return wishes(`${resource} ${JSON.stringify(amount)}`, { rspec: { [resource]: amount } });
  }),
  wishes("a resource of a prototype", { rspec: JSON.parse('{"__proto__x":1,"constructor":1}') as object }),
  wishes("a resource that is none", { rspec: { gpu: 1 } }),
  ...[
    [`${ED}\n${ED}`, "two lines"],
    [`command="id" ${ED}`, "a command"],
    [`restrict,pty ${ED}`, "options"],
    [`${ED.slice(0, 40)}`, "half of it"],
    ["ssh-dss AAAAB3NzaC1kc3MAAAABAAAAAQAAAAEAAAAB", "a type that is not trusted"],
    [`ssh-rsa ${ED.split(" ")[1]}`, "another type than it says"],
    [`${ED}\0`, "NUL"],
    [`${ED} ${"x".repeat(17_000)}`, "17,000 characters"],
    ["", "nothing in it"],
  ].map(([key, what]) => wishes(`a key with ${what}`, { keys: [key] })),
  wishes("1,001 keys", { keys: Array(1_001).fill(ED) }),
  ...["../x", "/etc", "a b", "sha256:x", "a".repeat(129), "x/y", "http://x/y"].map((image) =>
    wishes(`the image ${image.slice(0, 12)}`, { image }),
  ),
  wishes("a start script with NUL", { initscript: "a\0b" }),
  wishes("a start script of 64 KiB", { initscript: "a".repeat(65_537) }),
  wishes("an instantiation that is none", { instantiation: "root" }),
  ...[-1, 0.5, 2 ** 53, "1"].map((generation) => wishes(`generation ${generation}`, { generation })),
  wishes("257 delegations", { delegations: Array(257).fill({ caller: "ada" }) }),
  wishes("a delegation to root", { delegations: [{ caller: "root" }] }),
  wishes("tags with control characters", { tags: { a: "\u001b[2J" } }),
  wishes("an end before the epoch", { expiresAt: -1 }),
  wishes("words that nobody knows", { privileged: true }),
];

/** Everything that a sliver may try over its socket. */
export const INPUTS: readonly Input[] = [
  // First: at the same second it is the very ticket that was used.
  ticket("that was used", (rig) => rig.ticket(spec("used"), { jti: "u".repeat(20) })),
  ...HTTP,
  ...XML,
  ...JSON_BODIES,
  ...CALLS,
  ...LOANS,
  ...TICKETS,
];
