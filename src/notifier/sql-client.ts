// What the notifier asks of a database connection: statements that are prepared by name.

export type SqlClient = {
  query<Row extends object>(statement: {
    readonly name: string;
    readonly text: string;
    readonly values: unknown[];
  }): Promise<{ readonly rows: Row[]; readonly rowCount: number | null }>;
};
