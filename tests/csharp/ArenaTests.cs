// The bot in C# on the arena's server in C, among bots in C.

using System;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Text.RegularExpressions;

internal static class ArenaTests
{
    private static int FreePort()
    {
        using (var socket = new UdpClient(new IPEndPoint(IPAddress.Loopback, 0)))
            return ((IPEndPoint)socket.Client.LocalEndPoint).Port;
    }

    private static double Number(string text, string name)
    {
        Match match = Regex.Match(text, @"\b" + name + @"=(-?[\d.]+)");
        if (!match.Success)
            throw new TestFailure("no " + name + " in: " + text);
        return double.Parse(match.Groups[1].Value, CultureInfo.InvariantCulture);
    }

    public static void a_bot_in_C_sharp_plays_in_the_arena()
    {
        string address = "127.0.0.1:" + FreePort(), trace = Path.Combine(Program.Root, "build/csharp/arena.trace");
        using (var server = new Program("build/arena-server", "--address " + address + " --seconds 60 --slots 8 --trace " + trace))
        {
            Runner.Until(() => server.Output.Contains("open at"), () => System.Threading.Thread.Sleep(20), "an arena that is open");
            using (var bots = new Program("build/arena-bots", "--address " + address + " --bots 4 --seconds 9.5"))
            using (var bot = new Program("/usr/bin/env", "mono build/csharp/ArenaBot.exe --address " + address + " --name Csharp --seconds 7.5"))
            {
                Runner.Equal(0, bot.Wait(), "the bot's exit status: " + bot.Output);
                Runner.Equal(0, bots.Wait(), "the C bots' exit status: " + bots.Output);
                string summary = bot.Output.Split('\n').Last(line => line.StartsWith("summary"));
                Runner.True(Number(summary, "snapshots") > 150, "snapshots: " + summary);
                Runner.Equal(0.0, Number(summary, "unreadable"), "unreadable messages: " + summary);
                Runner.Equal(5.0, Number(summary, "players"), "players that it saw: " + summary);
                Runner.True(Number(summary, "moved") > 2000, "the server moved it: " + summary);
                Runner.True(Number(summary, "late_percent") < 10, "commands that came too late: " + summary);
                Runner.Note(summary.Replace("summary ", ""));
            }
            server.Terminate();
            Runner.Equal(0, server.Wait(), "the server's exit status: " + server.Output);
            string played = server.Output.Split('\n').Last(line => line.StartsWith("summary"));
            Runner.True(Number(played, "joined") == 5 && Number(played, "wrong") == 0, "the server's view: " + played);
        }
        File.Delete(trace);
    }
}
