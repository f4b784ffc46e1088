import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const browser = fileURLToPath(new URL("../browser/", import.meta.url));
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0f6e6e"/><path d="M4 12V4l8 8V4" fill="none" stroke="#fff" stroke-width="2" stroke-linejoin="round"/></svg>';

/** Builds the page. Returns the content of its files by name; every name but index.html holds a digest of the content. */
export async function makePage(): Promise<ReadonlyMap<string, Buffer>> {
  const files = new Map<string, Buffer>();
  const add = (stem: string, ending: string, content: string) => {
    const digest = createHash("sha256").update(content).digest("hex").slice(0, 12);
    const name = `${stem}-${digest}.${ending}`;
    files.set(name, Buffer.from(content));
    return `/assets/${name}`;
  };
  const script = add("page", "js", await scriptText("main.tsx"));
  const worker = add("worker", "js", await scriptText("worker.ts"));
  const style = add("page", "css", styleText());
  const icon = add("icon", "svg", ICON);
  const licence = add("licences", "txt", licences());
  files.set("index.html", Buffer.from(indexText({ script, worker, style, icon, licence })));
  return files;
}

async function scriptText(input: string): Promise<string> {
  const build = await rolldown({
    input: `${browser}${input}`,
    platform: "browser",
    logLevel: "warn",
  });
  try {
    const { output } = await build.generate({ format: "esm", codeSplitting: false, minify: true });
    return output[0].code;
  } finally {
    await build.close();
  }
}

function styleText(): string {
  const uplot = new URL("uPlot.min.css", import.meta.resolve("uplot"));
  return `${readFileSync(uplot, "utf8")}\n${readFileSync(`${browser}page.css`, "utf8")}`;
}

/** Of what is compiled into the script: it has to come along. */
function licences(): string {
  const texts = ["preact", "@preact/signals", "@preact/signals-core", "uplot"].map((name) => {
    const [folder] = import.meta.resolve(name).split("/dist/", 1);
    return `${name}\n\n${readFileSync(new URL(`${folder}/LICENSE`), "utf8")}`;
  });
  return texts.join("\n");
}

function indexText(
  paths: Readonly<Record<"script" | "worker" | "style" | "icon" | "licence", string>>,
): string {
  const { script, worker, style, icon, licence } = paths;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="worker" content="${worker}">
<title>Nodeyard</title>
<link rel="icon" href="${icon}">
<link rel="stylesheet" href="${style}">
<link rel="license" href="${licence}">
<script type="module" src="${script}"></script>
</head>
<body>
<div id="app"><noscript>This page needs JavaScript. <code>nodeyard list</code> and <code>nodeyard explain</code> show the same on a terminal.</noscript></div>
</body>
</html>
`;
}
