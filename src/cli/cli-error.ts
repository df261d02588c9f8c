/** What went wrong, in words for the user who typed the command; printed without a stack. */
export class CliError extends Error {}

export const notRunning = 'Offhook does not run here. Start it with: npm start';
