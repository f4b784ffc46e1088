import {
  type Entry,
  Is,
  Key,
  mapOf,
  type Reader,
  STRING,
  STRING_OR_STRINGS,
  type Values,
} from "@nodeyard/driver";
import { ANY, apiRoles } from "@nodeyard/model";

/** The issuer of a token identifies the client; this table gives the client its rights. */
const grantTable = {
  claims: Key.field(
    "Claims and the value of each, or several of which it must have one; a claim that is a list must have it in the list. A dot leads into a claim: `realm_access.roles`.",
    { needed: true },
    mapOf(STRING_OR_STRINGS),
    readClaims,
  ),
  role: Key.field("What the client may do.", { needed: true }, STRING.meta({ enum: apiRoles }), (at, key) => {
    const role = apiRoles.find((one) => one === at.raw[key]);
    if (role === undefined) at.error(key, `must be one of ${apiRoles.join(", ")}`);
    return role ?? "viewer";
  }),
  labels: Key.texts(
    "Labels that the client is limited to; `*`: all of them, as without the key but for a user.",
  ),
  tenants: Key.texts("The same of tenants."),
};

const issuer = Key.section({
  name: Key.text("Stands before the name of each client, `oidc:NAME:CLIENT`, so it must stay the same.", {
    needed: true,
    like: Is.pattern('1 to 63 of a-z, 0-9 and "-"', /^[a-z0-9][a-z0-9-]{0,62}$/, [
      ["gitlab"],
      ["Git Lab", "-a"],
    ]),
  }),
  issuer: Key.text("Its URL, exactly as in the claim `iss`; OpenID Connect Discovery leads to its keys.", {
    needed: true,
    like: Is.textLike("an https URL, or http of an issuer on this machine", isSecureUrl, [
      ["https://gitlab.example.org", "http://127.0.0.1:8080"],
      ["http://gitlab.example.org", "gitlab.example.org"],
    ]),
  }),
  audience: Key.text("What the claim `aud` must be, or have in its list: tokens for others are refused.", {
    needed: true,
    like: Is.NOT_EMPTY,
  }),
  "name-claim": Key.text(
    "The claim with the name of a client, which the issuer must never give to another.",
    {
      default: "sub",
    },
  ),
  grants: Key.entries(
    Key.section(grantTable),
    "The first whose claims all match counts. A client that none matches is refused.",
  ).map((grants) => grants.map(grantOf)),
});

/** Keys of `webapp`. */
export const webappTable = {
  port: Key.integer("Port; 0: one that is free.", { default: 8005, like: Is.whole(0, 65_535) }),
  listen_address: Key.text("Address to listen on.", { default: "0.0.0.0", like: Is.orEmpty(Is.HOST) }).as(
    "listenAddress",
  ),
  tls: Key.inner(
    Key.section({
      cert: Key.text("PEM file of the certificate, followed by those of its authorities.", {
        needed: "loader",
      }).names("file"),
      key: Key.text("PEM file of its key.", { needed: "loader" }).names("file"),
      ca: Key.text("PEM file of an authority: clients need a certificate of it, beside their token.").names(
        "file",
      ),
    }),
    "TLS 1.2 or later instead of plain HTTP. SIGHUP reads the files again. Unknown to the old launcher.",
    { default: null },
  ),
  oidc: Key.entries(
    issuer,
    "Issuers whose JSON Web Tokens REST v1 accepts. Unknown to the old launcher.",
  ).map((issuers) => issuers.map(({ at: _, ...one }) => one)),
};

/** An accepted issuer of tokens, and the rights of its tokens. */
export type IssuerConfig = Values<typeof webappTable>["oidc"][number];

/** Whether the URL is protected against an attacker on the network: it uses TLS, or stays on this machine. */
export function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return (
    protocol === "https:" || (protocol === "http:" && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname))
  );
}

/** Values are compared as texts, so numbers and flags may be written as such. */
function readClaims(at: Reader, key: string): Readonly<Record<string, readonly string[]>> {
  const claims = Object.entries(at.mapping(key) ?? {}).map(
    ([name, value]) => [name, (Array.isArray(value) ? value : [value]).map(String)] as const,
  );
  if (claims.length === 0) at.error(key, "must name a claim: without one it would match every client");
  return Object.fromEntries(claims);
}

/** With the same limits as a token by name can have. */
function grantOf({ at, role, labels, tenants, claims }: Entry<Values<typeof grantTable>>) {
  if (role === "user" && (labels.length === 0 || tenants.length === 0))
    at.error("role", `is user, which needs labels and tenants: name them, or all of them with "${ANY}"`);
  if ((role === "operator" || role === "admin") && [...labels, ...tenants].some((one) => one !== ANY))
    at.error("role", `is ${role}, which is not limited to labels or tenants`);
  const limits = (named: readonly string[]) => (named.length === 0 ? [ANY] : named);
  return { claims, role, labels: limits(labels), tenants: limits(tenants) };
}
