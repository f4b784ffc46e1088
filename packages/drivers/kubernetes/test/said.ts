import { readFileSync } from "node:fs";
import { resolveAccess } from "../src/client/index.ts";

// What this driver sends with the kubeconfig of a folder, in the form of testing/cloud-files/judge.py. argv: folder, context.

const [folder = "", context = ""] = process.argv.slice(2);
const read = (path: string) => (path.startsWith(`${folder}/`) ? readFileSync(path, "utf8") : undefined);
const files = {
  env: { KUBECONFIG: `${folder}/kubeconfig` },
  home: "/",
  read,
  run: async () => "",
  proxy: () => null,
};
const { authorization } = await resolveAccess(context, files, new AbortController().signal);
process.stdout.write(`${JSON.stringify({ authorization })}\n`);
