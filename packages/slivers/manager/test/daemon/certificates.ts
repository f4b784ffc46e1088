import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Certificates of one authority, `ca.pem`, in `folder`, made by openssl. */
export class Certificates {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.#openssl("req", "-x509", ...this.#newKey("ca"), "-days", "2", "-out", "ca.pem", "-subj", "/CN=lab");
  }

  /** For `CN=name` at 127.0.0.1; its files are `name.pem` and `name.key`. */
  make(name: string): void {
    this.#openssl("req", ...this.#newKey(name), "-out", "request", "-subj", `/CN=${name}`);
    writeFileSync(this.path("extensions"), "subjectAltName=IP:127.0.0.1\n");
    const ca = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "extensions"];
    this.#openssl("x509", "-req", "-in", "request", ...ca, "-days", "2", "-out", `${name}.pem`);
  }

  /** The key in the file `name`, such that it wants a passphrase. */
  lock(name: string, to: string): void {
    this.#openssl("pkcs8", "-topk8", "-in", name, "-out", to, "-passout", "pass:secret");
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  text(name: string): string {
    return readFileSync(this.path(name), "utf8");
  }

  #newKey(name: string): string[] {
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", `${name}.key`];
  }

  #openssl(...args: readonly string[]): void {
    execFileSync("openssl", args, { cwd: this.#folder, stdio: "ignore" });
  }
}
