// The part of a database connection that the notifier needs, i.e. named prepared statements.

export type SqlClient = {
  query<Row extends object>(statement: {
    readonly name: string;
    readonly text: string;
    readonly values: unknown[];
  }): Promise<{ readonly rows: Row[]; readonly rowCount: number | null }>;
};
