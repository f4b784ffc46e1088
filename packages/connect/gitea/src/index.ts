export { gitea } from "./gitea.ts";
