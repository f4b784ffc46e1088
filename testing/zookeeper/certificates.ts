import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Paths of PEM files: one authority, and one certificate for 127.0.0.1 and localhost that serves both sides. */
export interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** Private key and certificate in one file, as ZooKeeper wants its key store. */
  readonly keyStore: string;
}

const CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/** Makes a fresh authority and a certificate in `folder`, valid for so many days. */
export async function makeCertificates(folder: string, days = 2): Promise<Certificates> {
  const at = (name: string) => join(folder, name);
  await run("openssl", [
    ...["req", "-x509", ...CURVE, "-days", String(days), "-subj", "/CN=Nodeyard test authority"],
    ...["-keyout", at("ca-key.pem"), "-out", at("ca.pem")],
  ]);
  await run("openssl", [
    ...["req", ...CURVE, "-subj", "/CN=localhost", "-keyout", at("key.pem"), "-out", at("request.pem")],
  ]);
  await writeFile(at("extensions.cnf"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
  await run("openssl", [
    ...["x509", "-req", "-in", at("request.pem"), "-CA", at("ca.pem"), "-CAkey", at("ca-key.pem")],
    ...["-CAcreateserial", "-days", String(days), "-extfile", at("extensions.cnf"), "-out", at("cert.pem")],
  ]);
  await writeFile(at("keystore.pem"), [await readFile(at("key.pem")), await readFile(at("cert.pem"))]);
  return { ca: at("ca.pem"), cert: at("cert.pem"), key: at("key.pem"), keyStore: at("keystore.pem") };
}
