// An MCP server on standard input and output, for cases/mcp-stdio.mjs.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const server = new McpServer({ name: 'notes', version: '0.4.0' }, { instructions: 'Notes are short.' });
const notes = [];
server.registerTool('add', { description: 'Add a note', inputSchema: { note: z.string() } }, async ({ note }) => {
  notes.push(note);
  return { content: [{ type: 'text', text: `${notes.length} notes for ${process.env.OWNER}` }] };
});
server.registerTool('die', { description: 'End the server' }, async () => process.exit(3));
server.registerResource('all', 'notes://all', { title: 'All notes' }, async uri => ({ contents: [{ uri: uri.href, text: notes.join('\n') }] }));
await server.connect(new StdioServerTransport());
