export { motoPython, requireAws } from "./require.ts";
export { type AwsCall, AwsServer, type AwsSettings, type AwsSite, startAws } from "./server.ts";
