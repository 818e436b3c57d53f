# Host a game or join one, and walk with the arrow keys. The server moves everyone; clients send what they press.
#
#     godot3 --path build/godot/demo                                   a window with buttons
#     godot3-server --path build/godot/demo --host=127.0.0.1:40000     a server without a window
#     godot3 --path build/godot/demo --join=127.0.0.1:40000 --walk=circle
extends Node2D

const PROTOCOL = 0x6e6574636f646501  # of this game, and of each version of it that can not play with another
const SPEED = 140.0
const FIELD = Rect2(20, 70, 600, 300)
const KEY_FILE = "user://demo.key"
const KEY_SECONDS = 5.0  # in which a host on this machine must have made it

var peer = null
var players = {}
var options = {}
var seconds = 0.0
var walked = 0.0
var tick = 0
var hosted_at = ""
var attempt = 0  # counts host, join and leave, so that one that waits knows whether it is the latest

onready var address = $Interface/Row/Address
onready var invitation = $Interface/Row/Invitation
onready var net = $Interface/Net


func _ready():
	for argument in OS.get_cmdline_args():
		if argument.begins_with("--") and "=" in argument:
			var parts = argument.substr(2).split("=", true, 1)
			options[parts[0]] = parts[1]
	get_tree().connect("network_peer_connected", self, "on_peer_connected")
	get_tree().connect("network_peer_disconnected", self, "on_peer_disconnected")
	get_tree().connect("connected_to_server", self, "on_connected")
	get_tree().connect("connection_failed", self, "on_ended")
	get_tree().connect("server_disconnected", self, "on_ended")
	$Interface/Row/Host.connect("pressed", self, "host")
	$Interface/Row/Join.connect("pressed", self, "join")
	$Interface/Row/Invite.connect("pressed", self, "invite")
	$Interface/Row/Leave.connect("pressed", self, "leave")
	if "host" in options:
		address.text = options["host"]
		host()
	elif "join" in options:
		address.text = options["join"]
		join()


# ---- tokens ----

# In a real game a backend has the private key: it knows the player, and gives a token by HTTPS. The servers have the same key, players never.
# Here host and players are on one machine, so that a file of the user's stands for both.
# It is the host that makes it: two that start together would each make one of their own. Empty if there is none.
func read_key():
	var file = File.new()
	var key = PoolByteArray()
	if file.open(KEY_FILE, File.READ) == OK:
		key = file.get_buffer(32)
		file.close()
	return key if key.size() == 32 else PoolByteArray()


func make_key():
	var key = read_key()
	if key.size() == 32:
		return key
	key = NetcodePeer.new().make_key()
	var file = File.new()
	var result = file.open(KEY_FILE, File.WRITE)
	if result == OK:
		file.store_buffer(key)
		result = file.get_error()
		file.close()
	if result != OK:
		print("demo: the key can not be stored in ", OS.get_user_data_dir(), ": only those who have an invitation can join")
	return key


func make_token(where, seconds_valid):
	randomize()
	return NetcodePeer.new().make_token({
		"addresses": [where],
		"client_id": 1 + randi() % 0x7fffffff,  # the player's number in your backend
		"protocol_id": PROTOCOL,
		"private_key": read_key(),
		"expire_seconds": seconds_valid,
	})


# ---- host, join, leave ----

func host():
	attempt += 1
	peer = NetcodePeer.new()
	var result = peer.create_server({
		"address": address.text,
		"protocol_id": PROTOCOL,
		"private_key": make_key(),
		"max_clients": 16,
	})
	if result != OK:
		net.text = peer.report()
		return
	hosted_at = address.text
	get_tree().network_peer = peer
	add_player(1, FIELD.position + FIELD.size / 2)
	print("demo: hosting at ", hosted_at)


func join():
	attempt += 1
	if invitation.text == "" and read_key().size() != 32:
		wait_for_key(attempt)
		return
	peer = NetcodePeer.new()
	var token = Marshalls.base64_to_raw(invitation.text) if invitation.text != "" else make_token(address.text, 30)
	if peer.create_client(token) != OK:
		net.text = peer.report()
		return
	get_tree().network_peer = peer
	net.text = "connecting ..."


# Joins when the host has made the key, unless another button was pressed meanwhile.
func wait_for_key(this_attempt):
	net.text = "waiting for a host on this machine ..."
	print("demo: waiting for a host on this machine")
	var waited = 0.0
	while waited < KEY_SECONDS and read_key().size() != 32:
		yield(get_tree().create_timer(0.1), "timeout")
		waited += 0.1
		if attempt != this_attempt:
			return
	if read_key().size() == 32:
		join()
		return
	net.text = "there is no key: host first, or paste an invitation"
	print("demo: ", net.text)


# A token for a player elsewhere, to be pasted there. It is good for one player, for five minutes.
func invite():
	if read_key().size() != 32:
		net.text = "there is no key: host first"
		return
	OS.clipboard = Marshalls.raw_to_base64(make_token(hosted_at if hosted_at != "" else address.text, 300))
	net.text = "the invitation is in the clipboard"


func leave():
	attempt += 1
	if peer != null:
		peer.close_connection()
	on_ended()


func on_ended():
	net.text = peer.report() if peer != null else ""
	print("demo: ended: ", net.text)
	get_tree().network_peer = null
	peer = null
	hosted_at = ""
	for id in players.keys():
		remove_player(id)


func on_connected():
	print("demo: joined as ", get_tree().get_network_unique_id())


func on_peer_connected(id):
	if get_tree().is_network_server():
		add_player(id, FIELD.position + Vector2(randf() * FIELD.size.x, randf() * FIELD.size.y))


func on_peer_disconnected(id):
	remove_player(id)


func add_player(id, position):
	var player = load("res://player.gd").new()  # Godot 3.2's editor, which reads scripts in two threads, may fail at preload
	player.id = id
	player.position = position
	player.target = position
	players[id] = player
	$Players.add_child(player)


func remove_player(id):
	if id in players:
		players[id].queue_free()
		players.erase(id)


# ---- the game ----

func pressed(delta):
	walked += delta
	match options.get("walk", ""):
		"circle":
			return Vector2(cos(walked * 2.0), sin(walked * 2.0))
		"square":
			return [Vector2(1, 0), Vector2(0, 1), Vector2(-1, 0), Vector2(0, -1)][int(walked) % 4]
	return Vector2(Input.get_action_strength("ui_right") - Input.get_action_strength("ui_left"),
			Input.get_action_strength("ui_down") - Input.get_action_strength("ui_up"))


func _physics_process(delta):
	if peer == null or peer.get_connection_status() != NetworkedMultiplayerPeer.CONNECTION_CONNECTED:
		return
	tick += 1
	if not get_tree().is_network_server():
		rpc_unreliable_id(1, "press", pressed(delta))
		return
	players[1].direction = pressed(delta)
	var state = []
	for id in players:
		var player = players[id]
		player.position += player.direction.clamped(1.0) * SPEED * delta
		player.position.x = clamp(player.position.x, FIELD.position.x, FIELD.end.x)
		player.position.y = clamp(player.position.y, FIELD.position.y, FIELD.end.y)
		state.append([id, player.position])
	if tick % 2 == 0:
		rpc_unreliable("see", state)


# On the server. Nothing that a client sends is trusted: its id follows from its connection, and its arguments are checked.
remote func press(direction):
	var id = get_tree().get_rpc_sender_id()
	if get_tree().is_network_server() and id in players and typeof(direction) == TYPE_VECTOR2 and direction.length() < 10.0:
		players[id].direction = direction


# On clients, from the server only: "puppet" lets no other peer call it.
puppet func see(state):
	var there = {}
	for entry in state:
		there[entry[0]] = true
		if not entry[0] in players:
			add_player(entry[0], entry[1])
		players[entry[0]].target = entry[1]
	for id in players.keys():
		if not id in there:
			remove_player(id)


# ---- the label, the picture ----

func _process(delta):
	seconds += delta
	if peer != null and peer.get_connection_status() == NetworkedMultiplayerPeer.CONNECTION_CONNECTED:
		show_net()
	if "picture" in options and players.size() >= 3 and seconds > 4.0:
		take_picture(options["picture"])
		options.erase("picture")
	if "seconds" in options and seconds > float(options["seconds"]):
		get_tree().quit()


func show_net():
	var numbers = peer.statistics()
	if get_tree().is_network_server():
		net.text = "server at %s: %d clients, %d kB out" % [hosted_at, numbers["clients"], numbers["bytes_sent"] / 1000]
	else:
		net.text = "client %d of %d players: %d ms, %.1f %% lost, %d kB in" % [peer.get_unique_id() % 10000, players.size(),
				numbers["round_trip_seconds"] * 1000.0, numbers["loss"] * 100.0, numbers["bytes_received"] / 1000]


func take_picture(path):
	yield(VisualServer, "frame_post_draw")
	var image = get_viewport().get_texture().get_data()
	image.flip_y()
	image.convert(Image.FORMAT_RGB8)
	if image.save_png(path) == OK:
		print("demo: picture at ", path)


func _draw():
	draw_rect(FIELD.grow(20), Color(0.13, 0.15, 0.2))
	draw_rect(FIELD.grow(20), Color(0.35, 0.4, 0.5), false, 2.0)
