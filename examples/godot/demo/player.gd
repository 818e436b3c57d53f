# A player: a disc in the colour of its peer id, with its number.
extends Node2D

const RADIUS = 18.0

var id = 0
var direction = Vector2()  # what its player presses; the server moves it
var target = Vector2()  # where the server says that it is


func colour():
	return Color.from_hsv(fmod(id * 0.381966, 1.0), 0.85, 0.95)


func _process(delta):
	if not get_tree().is_network_server():
		position = position.linear_interpolate(target, min(1.0, delta * 15.0))


func _draw():
	draw_circle(Vector2(), RADIUS, colour())
	draw_circle(Vector2(), RADIUS * 0.6, colour().darkened(0.25))


func _ready():
	var label = Label.new()
	label.text = str(id % 10000)
	label.rect_position = Vector2(-16, RADIUS)
	add_child(label)
